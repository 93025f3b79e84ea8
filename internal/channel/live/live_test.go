package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

// The engine keeps its promises on platforms of each kind. Those here are in memory; the platforms' packages have the same test with
// their fake servers.
func TestConformance(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		for _, idempotent := range []bool{false, true} {
			rules := live.Rules{
				Format: markup.Plain, MaxText: 500, Cursor: " ▍", InPlace: inPlace, Idempotent: idempotent, HasButtons: inPlace, TypingLife: 5 * time.Second,
			}
			t.Run(fmt.Sprintf("in place %v, idempotent %v", inPlace, idempotent), func(t *testing.T) {
				channeltest.Run(t, channeltest.Platform{
					New:   func() channeltest.Server { return &server{rules: rules, chats: map[string][]*message{}} },
					Chats: []string{"a", "b"}, Idempotent: idempotent,
				})
			})
		}
	}
}

// server is a platform in memory.
type server struct {
	rules live.Rules

	mu         sync.Mutex
	chaos      func() channeltest.Fault
	chats      map[string][]*message
	requests   int
	violations []string
	penalty    map[string]time.Time
}

type message struct {
	id, key, text string
	isBot         bool
	isDeleted     bool
}

var errNoAnswer = errors.New("no answer")

func (s *server) Open() channel.StreamChannel { return s.open(time.Millisecond) }

// open returns a channel that makes at most one request in each gap.
func (s *server) open(gap time.Duration) channel.StreamChannel {
	return &bot{server: s, live: live.NewBot("bot", s.rules, gap, slog.New(slog.DiscardHandler))}
}

func (s *server) SetChaos(next func() channeltest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chaos = next
}

func (s *server) Say(chat string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(chat, &message{text: "hello"}).id
}

func (s *server) add(chat string, m *message) *message {
	m.id = fmt.Sprint(chat, len(s.chats[chat]))
	s.chats[chat] = append(s.chats[chat], m)
	return m
}

func (s *server) visible(chat string) (list []*message) {
	for _, m := range s.chats[chat] {
		if m.isBot && !m.isDeleted {
			list = append(list, m)
		}
	}
	return list
}

func (s *server) Visible(chat string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.visible(chat) {
		list = append(list, m.text)
	}
	return list
}

func (s *server) Remove(chat string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.visible(chat); n < len(list) {
		list[n].isDeleted = true
	}
}

func (s *server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// request makes a request, with a fault if one is due.
func (s *server) request(ctx context.Context, chat string, effect func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if time.Now().Before(s.penalty[chat]) {
		s.violations = append(s.violations, "a request during a penalty")
	}
	fault := channeltest.Fault{}
	if s.chaos != nil {
		fault = s.chaos()
	}
	switch fault.Kind {
	case channeltest.Penalized:
		if s.penalty == nil {
			s.penalty = map[string]time.Time{}
		}
		s.penalty[chat] = time.Now().Add(fault.Wait)
		return &live.Penalty{Wait: fault.Wait, Err: errNoAnswer}
	case channeltest.Broken:
		return live.ErrUnsent
	case channeltest.LostBefore:
		return fmt.Errorf("%w: %w", live.ErrUnknown, errNoAnswer)
	}
	err := effect()
	if fault.Kind == channeltest.LostAfter || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", live.ErrUnknown, errNoAnswer)
	}
	return err
}

// bot is a channel on the platform.
type bot struct {
	server *server
	live   *live.Bot
}

func (b *bot) Name() string                             { return "test" }
func (b *bot) Platform() string                         { return "test" }
func (b *bot) Run(context.Context, channel.Inbox) error { return nil }
func (b *bot) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{Idempotent: b.server.rules.Idempotent}
}

func (b *bot) place(chat string) (live.Place, live.Chat) {
	return live.Place{ID: chat, Gap: time.Second}, &room{b.server, chat}
}

func (b *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, ch := b.place(m.ChatID)
	return b.live.Send(ctx, at, ch, m)
}

func (b *bot) SendStream(ctx context.Context, chat string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, ch := b.place(chat)
	return b.live.Deliver(ctx, at, ch, metadata, events)
}

// room implements [live.FindChat].
type room struct {
	s    *server
	chat string
}

func (c *room) text(p live.Post) string {
	if p.Kind == live.Card {
		return p.Status.Markdown() + p.Status.Time()
	}
	return p.Text.Text
}

func (c *room) Post(ctx context.Context, p live.Post) (id string, err error) {
	err = c.s.request(ctx, c.chat, func() error {
		for _, m := range c.s.chats[c.chat] {
			if c.s.rules.Idempotent && m.key == p.Key {
				id = m.id
				return nil
			}
		}
		id = c.s.add(c.chat, &message{key: p.Key, text: c.text(p), isBot: true}).id
		return nil
	})
	if err != nil {
		id = ""
	}
	return id, err
}

// change applies a change to a message of the bot.
func (c *room) change(ctx context.Context, id string, change func(*message)) error {
	return c.s.request(ctx, c.chat, func() error {
		for _, m := range c.s.chats[c.chat] {
			if m.id == id && !m.isDeleted {
				change(m)
				return nil
			}
		}
		return live.ErrMissing
	})
}

func (c *room) Edit(ctx context.Context, id string, p live.Post) error {
	return c.change(ctx, id, func(m *message) { m.text = c.text(p) })
}

func (c *room) Delete(ctx context.Context, id string) error {
	return c.change(ctx, id, func(m *message) { m.isDeleted = true })
}

func (c *room) ShowTyping(ctx context.Context) error {
	return c.s.request(ctx, c.chat, func() error { return nil })
}

func (c *room) Find(ctx context.Context, lost live.Gap, request func(func() error) error) (id string, err error) {
	err = request(func() error {
		return c.s.request(ctx, c.chat, func() error {
			for _, m := range c.s.chats[c.chat] {
				if m.key == lost.Key && m.isBot && !m.isDeleted {
					id = m.id
				}
			}
			return nil
		})
	})
	return id, err
}

func (c *room) SendFile(ctx context.Context, f live.File) (string, error) {
	return c.Post(ctx, live.Post{Kind: live.Answer, Text: markup.Message{Text: "file " + f.Name}, Key: f.Key})
}
