package feishu

import (
	"html"
	"net/http"
	"strings"
	"sync"
	"testing"

	fake "github.com/leat-dev/leat/chattest/feishu"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	for name, streaming := range map[string]bool{"streaming": true, "quiet": false} {
		t.Run(name, func(t *testing.T) {
			channeltest.Run(t, channeltest.Platform{
				New:   func() channeltest.Server { return newConformant(streaming) },
				Chats: []string{"oc_1", "oc_2", "oc_3"}, Idempotent: true, Quiet: !streaming,
			})
		})
	}
}

// conformant is a fake for the conformance tests.
type conformant struct {
	*fake.Server
	streaming bool
	mu        sync.Mutex
	chaos     func() channeltest.Fault
}

func newConformant(streaming bool) *conformant {
	c, o := &conformant{streaming: streaming}, options()
	o.Chaos = c.next
	c.Server = fake.New(o)
	return c
}

func (c *conformant) next(string, string) *fake.Fault {
	c.mu.Lock()
	next := c.chaos
	c.mu.Unlock()
	if next == nil {
		return nil
	}
	switch f := next(); f.Kind {
	case channeltest.Penalized:
		return &fake.Fault{Status: http.StatusTooManyRequests, Code: codeRate, RetryAfter: f.Wait}
	case channeltest.Broken:
		return &fake.Fault{Status: http.StatusInternalServerError, Code: 1}
	case channeltest.LostBefore:
		return &fake.Fault{Before: true}
	case channeltest.LostAfter:
		return &fake.Fault{After: true}
	}
	return nil
}

func (c *conformant) Open() channel.StreamChannel {
	b := openBot(c.Server)
	b.options.Streaming = c.streaming
	return b
}

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string {
	return c.Server.Say(fake.Private(chat, "ou_ann"), "hello")
}

// Visible returns the texts without the references that the Markdown of cards needs.
func (c *conformant) Visible(chat string) []string {
	var list []string
	for _, m := range c.Server.Visible(chat) {
		list = append(list, strings.NewReplacer("**", "", "`", "").Replace(html.UnescapeString(m.Text)))
	}
	return list
}

func (c *conformant) Remove(chat string, n int) {
	if list := c.Server.Visible(chat); n < len(list) {
		c.Server.Remove(list[n].ID)
	}
}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }
