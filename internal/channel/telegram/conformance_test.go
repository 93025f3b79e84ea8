package telegram

import (
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Platform{
		New:   func() channeltest.Server { return newConformant() },
		Chats: []string{"7", "-100", "-200/5", "8", "9", "-300", "-400", "10"},
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
	c.Server = fake.New(fake.Options{Token: "1:test", Gap: time.Second, GroupGap: 3 * time.Second, Chaos: c.next})
	return c
}

func (c *conformant) next(string, int64) *fake.Fault {
	c.mu.Lock()
	next := c.chaos
	c.mu.Unlock()
	if next == nil {
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

func (c *conformant) Open() channel.StreamChannel {
	ch := New(Options{Name: "tg", Token: "1:test", Streaming: true, URL: "http://telegram.test", Log: slog.New(slog.DiscardHandler)}).(*bot)
	ch.client.http = &http.Client{Transport: c.Server}
	ch.client.files = ch.client.http
	return ch
}

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string {
	at, _ := parsePlace(chat)
	return messageRef(at.chat, c.Server.Say(fake.Writer{Chat: at.chat, Thread: at.thread, ID: 7, Name: "Ann"}, "hello"))
}

func (c *conformant) Visible(chat string) []string {
	at, _ := parsePlace(chat)
	var list []string
	for _, m := range c.Server.Visible(at.chat) {
		list = append(list, m.Text)
	}
	return list
}

func (c *conformant) Remove(chat string, n int) {
	at, _ := parsePlace(chat)
	if list := c.Server.Visible(at.chat); n < len(list) {
		c.Server.Remove(at.chat, list[n].ID)
	}
}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }
