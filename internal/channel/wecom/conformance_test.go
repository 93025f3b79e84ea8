package wecom

import (
	"strings"
	"sync"
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/wecom"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	for name, streaming := range map[string]bool{"streaming": true, "quiet": false} {
		t.Run(name, func(t *testing.T) {
			channeltest.Run(t, channeltest.Platform{
				New:   func() channeltest.Server { return newConformant(streaming) },
				Chats: []string{"ann", "group-1", "bob", "cleo", "group-2"}, Quiet: !streaming, Tombstone: noText,
			})
		})
	}
}

// conformant is a fake for the conformance tests. One bot at a time is connected with it.
type conformant struct {
	*fake.Server
	streaming bool
	stop      func() error // ends the newest bot
	mu        sync.Mutex
	chaos     func() channeltest.Fault
}

func newConformant(streaming bool) *conformant {
	c := &conformant{streaming: streaming, stop: func() error { return nil }}
	c.Server = fake.New(fake.Options{BotID: "bot", Secret: "secret", AckDelay: 20 * time.Millisecond, Chaos: c.next})
	return c
}

func (c *conformant) next(string) *fake.Fault {
	c.mu.Lock()
	next := c.chaos
	c.mu.Unlock()
	if next == nil {
		return nil
	}
	switch f := next(); f.Kind {
	case channeltest.Penalized:
		return &fake.Fault{Limit: f.Wait}
	case channeltest.Broken:
		return &fake.Fault{Code: codeBusy}
	case channeltest.LostBefore:
		return &fake.Fault{Before: true}
	case channeltest.LostAfter:
		return &fake.Fault{After: true}
	}
	return nil
}

func (c *conformant) Open() channel.StreamChannel {
	_ = c.Close() // as the end of the process before, whose connection may have been lost
	b := openBot(c.Server, &strings.Builder{})
	b.options.Streaming = c.streaming
	c.stop = runBot(b, &inbox{})
	waitForOthers()
	return b
}

// Close implements [io.Closer].
func (c *conformant) Close() error { return c.stop() }

// waitForOthers waits until all other goroutines wait: virtual time advances only then. Several tests may call it at the same time.
func waitForOthers() { time.Sleep(time.Millisecond) }

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string {
	p := fake.Private(chat)
	if strings.HasPrefix(chat, "group") {
		p = fake.Group(chat, "ann")
	}
	id := c.Server.Say(p, "hello")
	waitForOthers()
	return id
}

// Visible returns the texts without the marks of Markdown.
func (c *conformant) Visible(chat string) []string {
	var list []string
	for _, m := range c.Server.Visible(chat) {
		list = append(list, strings.NewReplacer("**", "", "`", "", `\`, "").Replace(m.Text))
	}
	return list
}

// Remove does nothing: people can't delete messages of a bot.
func (c *conformant) Remove(string, int) {}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }

// Violations adds streams that were not finished, in which people see an animation.
func (c *conformant) Violations() []string {
	list := c.Server.Violations()
	for _, chat := range []string{"ann", "group-1", "bob", "cleo", "group-2"} {
		for _, m := range c.Server.Visible(chat) {
			if m.IsOpen {
				list = append(list, "a stream was not finished: "+m.Text)
			}
		}
	}
	return list
}
