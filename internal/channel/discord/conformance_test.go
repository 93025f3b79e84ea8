package discord

import (
	"net/http"
	"sync"
	"testing"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Platform{
		New:   func() channeltest.Server { return newConformant() },
		Chats: []string{"97", "50", "51", "52", "53", "54", "55", "56"}, Idempotent: true,
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
	c.Server = fake.New(fake.Options{Token: "test", Chaos: c.next})
	return c
}

func (c *conformant) next(_, chat string) *fake.Fault {
	c.mu.Lock()
	next := c.chaos
	c.mu.Unlock()
	if next == nil || chat == "" {
		return nil
	}
	switch f := next(); f.Kind {
	case channeltest.Penalized:
		return &fake.Fault{Status: http.StatusTooManyRequests, RetryAfter: f.Wait}
	case channeltest.Broken:
		return &fake.Fault{Status: http.StatusInternalServerError}
	case channeltest.LostBefore:
		return &fake.Fault{Before: true}
	case channeltest.LostAfter:
		return &fake.Fault{After: true}
	}
	return nil
}

func (c *conformant) Open() channel.StreamChannel { return openBot(c.Server) }

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string {
	return c.Server.Say(fake.Member(chat, "7", "Ann"), "hello")
}

func (c *conformant) Visible(chat string) []string {
	var list []string
	for _, m := range c.Server.Visible(chat) {
		list = append(list, m.Text)
	}
	return list
}

func (c *conformant) Remove(chat string, n int) {
	if list := c.Server.Visible(chat); n < len(list) {
		c.Server.Remove(chat, list[n].ID)
	}
}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }
