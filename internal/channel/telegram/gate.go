package telegram

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// privateGap and groupGap are the times between two messages or edits in a chat. The limits are not published; about one a
	// second in private chats and 20 a minute in groups are known to pass.
	privateGap = 1100 * time.Millisecond
	groupGap   = 3100 * time.Millisecond
	// botGap is the time between two requests of the bot, to all chats together: about 30 a second pass.
	botGap = 34 * time.Millisecond
	// maxGates is how many chats are remembered before those without a limit in force are forgotten.
	maxGates = 1000
)

// gate lets the requests to one chat through: one at a time, no faster than the chat allows, and none while the server's penalty
// lasts.
type gate struct {
	busy chan struct{} // holds one element during a request
	gap  time.Duration

	mu      sync.Mutex
	users   int       // requests in flight or waiting
	next    time.Time // no message or edit before
	blocked time.Time // no request before, by order of the server
}

// free returns when a message or an edit is allowed.
func (g *gate) free() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return latest(g.next, g.blocked)
}

// unblocked returns when any request is allowed.
func (g *gate) unblocked() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocked
}

// isIdle reports whether the gate has no effect at that time.
func (g *gate) isIdle(at time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.users == 0 && at.After(g.next) && at.After(g.blocked)
}

func (g *gate) use(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users += n
}

// gates are the gates of all chats, and that of the bot.
type gates struct {
	mu     sync.Mutex
	byChat map[int64]*gate
	next   time.Time // no request of the bot before
}

// of returns the gate of a chat. The caller calls use(-1) when it needs it no longer.
func (s *gates) of(chat int64) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byChat[chat]
	if g == nil {
		if len(s.byChat) >= maxGates {
			for id, o := range s.byChat {
				if o.isIdle(time.Now()) {
					delete(s.byChat, id)
				}
			}
		}
		g = &gate{busy: make(chan struct{}, 1), gap: privateGap}
		if chat < 0 {
			g.gap = groupGap
		}
		s.byChat[chat] = g
	}
	g.use(1)
	return g
}

// reserve takes the next place in the bot's own limit and returns when it is.
func (s *gates) reserve() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := latest(s.next, time.Now())
	s.next = at.Add(botGap)
	return at
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// request calls a method for a chat when the gate allows it. isMessage is set for messages and edits, which count against the
// chat's limit.
func (c *bot) request(ctx context.Context, g *gate, isMessage bool, method string, params, result any) error {
	return c.pass(ctx, g, isMessage, func() error { return c.client.call(ctx, requestLimit, method, params, result) })
}

// pass calls send when the gate allows it. If the server imposes a penalty, no request passes until it is over.
func (c *bot) pass(ctx context.Context, g *gate, isMessage bool, send func() error) error {
	select {
	case g.busy <- struct{}{}:
		defer func() { <-g.busy }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	at := g.unblocked()
	if isMessage {
		at = g.free()
	}
	if err := sleepUntil(ctx, latest(at, c.gates.reserve())); err != nil {
		return err
	}
	err := send()
	g.mu.Lock()
	defer g.mu.Unlock()
	at = time.Now()
	if isMessage {
		g.next = at.Add(g.gap)
	}
	if code(err) == http.StatusTooManyRequests {
		g.blocked = at.Add(max(retryAfter(err), time.Second))
	}
	return err
}

func sleepUntil(ctx context.Context, at time.Time) error {
	if d := time.Until(at); d > 0 {
		return retry.Sleep(ctx, d)
	}
	return ctx.Err()
}
