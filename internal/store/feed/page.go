// Older messages, page by page, read from the log.

package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// MaxPage is the maximum number of messages in a page.
const MaxPage = 200

// Page returns up to limit messages before the one with the id before, and the turns that wrote or answer them. If before is empty,
// it returns the newest. A page holds at most [MaxPage] messages and 1 MiB. If limit is 0, it is that of the window. If the message
// doesn't exist, the error wraps [ErrNoMessage]. Page may read the whole log.
//
// A page that is in the fold costs a copy of its structure. Any other one holds the slow lock while the log is read,
// so only one reader of a conversation does that at a time.
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
		if !errors.Is(err, errCompacted) || f.Head() == head {
			return p, err
		}
	}
}

// readPage folds the log up to head and keeps only the messages of the page. It starts again if the log was trimmed
// between two pieces, or if a truncate returned to messages that it had evicted. If the log was compacted beyond
// head, it returns errCompacted, and Page tries again with the new head.
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

// pager folds a log to find the messages before a given one. It keeps at most twice as many messages as the page has,
// whatever the length of the log.
type pager struct {
	before string
	// limit is the number of messages in the page.
	limit     int
	keepAfter int64 // no message is evicted up to this seq
	t         transcript.Transcript
	// laterMessages holds the ids of the message before and all after it, which aren't folded. It is nil until before is found.
	laterMessages map[string]bool
}

// take folds the next event. It returns true if the log must be read again, because a truncate returned to evicted messages.
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
			return false // before still exists
		case e.Message != "" && g.t.Message(e.Message) == nil && g.t.Earlier:
			g.keepAfter = e.Seq
			restart = true
		}
		g.laterMessages = nil // before is removed, and ids aren't used twice
	}
	// Events that don't fit were logged when the feed was loaded. Every reader drops them.
	_ = g.t.Apply(e)
	return restart
}
