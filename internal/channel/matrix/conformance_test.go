package matrix

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	fake "github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

func TestConformance(t *testing.T) {
	for name, streaming := range map[string]bool{"streaming": true, "quiet": false} {
		t.Run(name, func(t *testing.T) {
			channeltest.Run(t, channeltest.Platform{
				New: func() channeltest.Server { return newConformant(streaming) }, Chats: newConformant(streaming).chats, Idempotent: true, Quiet: !streaming,
			})
		})
	}
}

// conformant is a fake for the conformance tests. Each one has the same rooms.
type conformant struct {
	*fake.Server
	streaming bool
	people    map[string]fake.Writer // by chat
	chats     []string
	opened    int
	mu        sync.Mutex
	chaos     func() channeltest.Fault
}

func newConformant(streaming bool) *conformant {
	c := &conformant{streaming: streaming, people: map[string]fake.Writer{}}
	c.Server = fake.New(fake.Options{Token: "secret", Chaos: c.next})
	ann := fake.Writer{ID: "@ann:matrix.test", Name: "Ann"}
	for range 2 {
		c.add(c.Direct(ann.ID, ann.Name))
		w := c.Group(ann, fake.Writer{ID: "@bob:matrix.test", Name: "Bob"})[0]
		c.add(w)
	}
	for _, chat := range c.chats[:2] {
		thread := c.people[chat]
		thread.Room = c.Direct(ann.ID, ann.Name).Room
		thread.Thread = c.Server.Say(thread, "the root of a thread")
		c.add(thread)
	}
	return c
}

func (c *conformant) add(w fake.Writer) {
	chat := place{w.Room, w.Thread}.id()
	c.people[chat] = w
	c.chats = append(c.chats, chat)
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
	c.opened++
	b := botOf(c.Server)
	b.isLive = c.streaming
	return b
}

func (c *conformant) SetChaos(next func() channeltest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chaos = next
}

func (c *conformant) Say(chat string) string { return c.Server.Say(c.people[chat], "hello") }

func (c *conformant) Visible(chat string) []string {
	var list []string
	for _, m := range c.Server.Visible(c.people[chat].Room) {
		list = append(list, m.Text)
	}
	return list
}

func (c *conformant) Remove(chat string, n int) {
	w := c.people[chat]
	if list := c.Server.Visible(w.Room); n < len(list) {
		c.Server.Remove(w, list[n].ID)
	}
}

func (c *conformant) Requests() int { return len(c.Server.Requests()) }

// Violations adds what remains of deleted messages, and messages that seem to be written still.
func (c *conformant) Violations() []string {
	list := slices.DeleteFunc(c.Server.Violations(), func(v string) bool {
		// A process that was killed after an edit which finished a message doesn't know that.
		return c.opened > 1 && strings.Contains(v, "which was finished")
	})
	for _, w := range c.people {
		for _, id := range c.Leftovers(w.Room) {
			list = append(list, "an edit of a deleted message remains: "+id)
		}
		for _, m := range c.Server.Visible(w.Room) {
			if m.IsLive {
				list = append(list, "a message is still marked as live: "+m.ID)
			}
		}
	}
	return list
}
