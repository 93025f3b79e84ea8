package live

import (
	"context"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// maxGates is how many chats are remembered before those without a limit in force are forgotten. A gate that still has a limit in
	// force survives, because a penalty must not be forgotten.
	maxGates = 1000
	// crowded is how long the queue of a bot's requests may be before live updates wait. It is about the time between two updates of
	// a chat, so the delay by a shorter queue is not noticeable.
	crowded = 500 * time.Millisecond
)

// gate lets the requests to one chat through: one at a time, no faster than the chat allows, and none while the server's penalty
// lasts. Every request of every delivery to the place passes it, also those of Send.
type gate struct {
	bot *gates
	// A channel instead of a mutex, because a context has to be able to end the wait.
	busy chan struct{} // holds one element during a request
	gap  time.Duration

	mu    sync.Mutex
	users int // requests in flight or waiting
	// The times below are read without the gate being busy, to plan the next update.
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

// release is called by each user that no longer needs the gate.
func (g *gate) release() { g.use(-1) }

// use counts the deliveries that have the gate, so that of doesn't remove one that is in use.
func (g *gate) use(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users += n
}

// gates are the gates of all chats of a bot, and that of the bot itself. A gate's mutex may be locked while its own is held, and
// never the other way around.
type gates struct {
	gap time.Duration // between two requests of the bot

	mu      sync.Mutex
	byPlace map[string]*gate
	// Each request moves it by the gap, so it is also the length of the queue.
	next time.Time // no request of the bot before
}

// of returns the gate of a place. The caller releases it. Two callers with one place get the same gate, which is what makes
// deliveries to topics of one chat share its limit.
func (s *gates) of(at Place) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byPlace[at.ID]
	if g == nil {
		if len(s.byPlace) >= maxGates {
			for id, o := range s.byPlace {
				if o.isIdle(time.Now()) {
					delete(s.byPlace, id)
				}
			}
		}
		g = &gate{bot: s, busy: make(chan struct{}, 1), gap: at.Gap}
		s.byPlace[at.ID] = g
	}
	g.use(1)
	return g
}

// reserve takes the next place in the bot's own limit and returns when it is. If so many requests wait that a live update would delay
// answers, isUrgent decides whether it takes one. The place is taken even if the request is not made afterwards, which costs one gap
// only.
func (s *gates) reserve(isUrgent bool) (at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = latest(s.next, time.Now())
	if !isUrgent && time.Until(at) > crowded {
		return at, errCrowded
	}
	s.next = at.Add(s.gap)
	return at, nil
}

// isCrowded reports whether live updates have to wait.
func (s *gates) isCrowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.next) > crowded
}

// penalized returns how many chats the server makes wait, and until when.
func (s *gates) penalized() (chats int, end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, g := range s.byPlace {
		if at := g.unblocked(); at.After(now) {
			chats++
			end = latest(end, at)
		}
	}
	return chats, end
}

// block holds back all requests of the bot. Places that were reserved before are not moved: those few requests arrive during the
// penalty at worst, and get it again.
func (s *gates) block(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = latest(s.next, end)
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pass calls send when the gate allows it. isMessage is set for messages and edits, which count against the chat's limit. If the
// server imposes a penalty, no request passes until it is over. The error is that of send, or of ctx. A penalty is returned as well:
// the caller decides whether to call pass again, which then waits.
func (g *gate) pass(ctx context.Context, isMessage bool, send func() error) error {
	return g.wait(ctx, isMessage, true, send)
}

// try is pass for live updates. If too many requests of the bot wait, it returns errCrowded.
func (g *gate) try(ctx context.Context, isMessage bool, send func() error) error {
	return g.wait(ctx, isMessage, false, send)
}

// wait takes the gate for one request: it waits until the chat and the bot allow it, makes it, and records what the answer means for
// the next one. The gap begins when the request ends, not when it begins, because the server counts what it has received.
func (g *gate) wait(ctx context.Context, isMessage, isUrgent bool, send func() error) error {
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
	place, err := g.bot.reserve(isUrgent)
	if err != nil {
		return err
	}
	if err := sleepUntil(ctx, latest(at, place)); err != nil {
		return err
	}
	err = send()
	current := time.Now()
	if p := penalty(err); p != nil {
		// Some servers ask for 0 s, and would get the same request in a tight loop.
		end := current.Add(max(p.Wait, time.Second))
		if p.IsGlobal {
			g.bot.block(end)
		}
		g.mu.Lock()
		g.blocked = end
		g.mu.Unlock()
	}
	if isMessage {
		g.mu.Lock()
		g.next = current.Add(g.gap)
		g.mu.Unlock()
	}
	return err
}

// sleepUntil waits until a time or the end of ctx. It returns an error if ctx has ended, also for a time in the past.
func sleepUntil(ctx context.Context, at time.Time) error {
	if d := time.Until(at); d > 0 {
		return retry.Sleep(ctx, d)
	}
	return ctx.Err()
}
