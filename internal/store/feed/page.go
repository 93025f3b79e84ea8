package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// MaxPage bounds the messages of a page.
const MaxPage = 200

// Page returns up to limit messages before the one with that id (empty: the newest), fewer where they fill 1 MiB, and
// the turns that said or answer them. A limit of 0 is that of the window; at most [MaxPage] are given. The error
// wraps [ErrNoMessage] where there is no such message. It may read the whole log.
func (f *Feed) Page(ctx context.Context, before string, limit int) (*Page, error) {
	l := f.registry.cfg.Window
	if limit > 0 {
		l.Messages = min(limit, MaxPage)
	}
	f.mu.Lock()
	if f.err != nil {
		defer f.mu.Unlock()
		return nil, f.err
	}
	t := f.fold
	i := len(t.Messages)
	if before != "" {
		i = slices.IndexFunc(t.Messages, func(m *transcript.Message) bool { return m.ID == before })
	}
	if from := t.Before(max(i, 0), l); i >= 0 && !f.short && (from > 0 || i == l.Messages || !t.Earlier) {
		defer f.mu.Unlock()
		p := &Page{Conversation: f.id, Epoch: f.epoch, Snapshot: t.Page(from, i)}
		p.Seq = f.head
		return p, nil
	}
	exists := i >= 0 || t.Earlier
	f.mu.Unlock()
	if !exists {
		return nil, fmt.Errorf("%w: page before %q", ErrNoMessage, before)
	}
	if err := f.lock(ctx); err != nil {
		return nil, err
	}
	defer f.unlock()
	for {
		head := f.Head()
		p, err := f.readPage(ctx, before, l, head)
		if !errors.Is(err, errSettled) || f.Head() == head {
			return p, err
		}
	}
}

// readPage folds the log up to head, keeping no more than the page needs.
func (f *Feed) readPage(ctx context.Context, before string, l transcript.Limits, head int64) (*Page, error) {
	g := pager{before: before, limit: l.Messages}
	p := &Page{Conversation: f.id}
	for restart := true; restart; {
		g.t, g.laterMessages, restart = transcript.Transcript{}, nil, false
		err := f.scan(ctx, head, func(e *event.Event) error {
			restart = g.take(e) || restart
			return nil
		}, func(r Stretch) { p.Epoch = r.Epoch })
		if errors.Is(err, errTrimmed) {
			restart = true
		} else if err != nil {
			return nil, fmt.Errorf("feed: page of %s: %w", f.id, err)
		}
	}
	if before != "" && g.laterMessages == nil {
		return nil, fmt.Errorf("%w: page before %q", ErrNoMessage, before)
	}
	to := len(g.t.Messages)
	p.Snapshot = g.t.Page(g.t.Before(to, l), to)
	p.Seq = head
	return p, nil
}

// pager folds a log for the messages before one of them.
type pager struct {
	before    string
	limit     int
	keepAfter int64 // nothing is evicted up to here
	t         transcript.Transcript
	// later are the ids of before and the messages after it, which are not folded; nil until before has come.
	laterMessages map[string]bool
}

// take folds the next event. It reports whether the log has to be read again, since a truncate went back to messages that
// were not kept.
func (g *pager) take(e *event.Event) (restart bool) {
	switch e.Type {
	case event.MessageAdd, event.MessageStart:
		if g.laterMessages != nil || e.Message == g.before {
			if g.laterMessages == nil {
				g.laterMessages = map[string]bool{}
			}
			g.laterMessages[e.Message] = true
			return false
		}
		if len(g.t.Messages) >= 2*g.limit && e.Seq > g.keepAfter {
			g.t.Evict(len(g.t.Messages) - g.limit)
		}
	case event.ConversationTruncate:
		switch {
		case g.laterMessages[e.Message]:
			return false // before is still there
		case e.Message != "" && g.t.Message(e.Message) == nil && g.t.Earlier:
			g.keepAfter = e.Seq
			restart = true
		}
		g.laterMessages = nil // before is gone, for good: ids are used once
	}
	// What doesn't fit was told of when the feed was loaded; every reader drops it alike.
	_ = g.t.Apply(e)
	return restart
}
