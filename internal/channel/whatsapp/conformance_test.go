package whatsapp

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/whatsapp"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Platform{
		New:   func() channeltest.Server { return newConformant() },
		Chats: []string{"15550001", "15550002", "15550003", "US.4", "15550005", "15550006", "15550007", "15550008"},
		Quiet: true,
	})
}

// conformant is a fake for the conformance tests.
type conformant struct {
	*fake.Server
	mu    sync.Mutex
	chaos func() channeltest.Fault
}

func newConformant() *conformant {
	c := &conformant{}
	o := serverOptions()
	o.PairGap, o.Rate, o.Chaos = 6*time.Second, 80, c.next
	c.Server = fake.New(o)
	return c
}

func (c *conformant) next(route, _ string) *fake.Fault {
	c.mu.Lock()
	next := c.chaos
	c.mu.Unlock()
	if next == nil || route != fake.RouteMessages && route != fake.RouteRead {
		return nil
	}
	switch f := next(); f.Kind {
	case channeltest.Penalized: // a read receipt doesn't count against the limit of messages
		if route == fake.RouteMessages {
			return &fake.Fault{Limit: f.Wait}
		}
	case channeltest.Broken:
		return &fake.Fault{Status: http.StatusInternalServerError, Code: 131000}
	case channeltest.LostBefore:
		return &fake.Fault{Before: true}
	case channeltest.LostAfter:
		return &fake.Fault{After: true}
	}
	return nil
}

func (c *conformant) Open() channel.StreamChannel { return openNumber(c.Server, slog.DiscardHandler) }

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string {
	return c.Server.Say(fake.Person{ID: chat, Name: "Ann", IsHidden: strings.HasPrefix(chat, "US.")}, "hello")
}

func (c *conformant) Visible(chat string) []string { return texts(c.Server, chat) }

// Remove does nothing: people can't delete messages of a number for other people.
func (c *conformant) Remove(string, int) {}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }
