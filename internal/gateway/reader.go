package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Reader is a conversation's feed as one principal reads it. When the principal loses access, calls that wait return at once,
// and no later call returns events.
type Reader struct {
	*feed.Feed
	g      *Gateway
	p      Principal
	access atomic.Int64 // the feed's access counter at the last decision
}

// Feed returns a conversation's feed for reading. The caller releases it.
func (g *Gateway) Feed(ctx context.Context, p Principal, id string) (*Reader, error) {
	// Access is checked after the feed is acquired, so that a change in between isn't missed. If the feed has to be loaded, access is
	// checked before too, so that a request without access doesn't load a conversation.
	if !g.feeds.Contains(id) {
		if _, err := g.Conversation(ctx, p, ActionRead, id); err != nil {
			return nil, err
		}
	}
	f, err := g.feeds.Acquire(ctx, id)
	if err != nil {
		return nil, JournalError("open feed", err)
	}
	r := &Reader{Feed: f, g: g, p: p}
	r.access.Store(-1)
	if err := r.Check(ctx); err != nil {
		f.Release()
		return nil, err
	}
	g.presence.enter(f.Conversation(), p.Account())
	return r, nil
}

// Release ends the use of the feed. It is called once.
func (r *Reader) Release() {
	r.g.presence.leave(r.Conversation(), r.p.Account())
	r.Feed.Release()
}

// Reattach returns a new reader of the same principal, after the feed was closed with [feed.ErrLost], and releases this one. Cursors stay
// valid. It checks the permission again. If it returns an error, this reader still has to be released.
func (r *Reader) Reattach(ctx context.Context) (*Reader, error) {
	next, err := r.g.Feed(ctx, r.p, r.Conversation())
	if err != nil {
		return nil, err
	}
	r.Release()
	return next, nil
}

// Check returns an error if the principal may not read any more; the error wraps ErrNotFound. It is cheap: it repeats the
// decision only if access to the conversation was changed since the last call, and reads the journal only for the first reader
// since then. Access that was granted since is not an AccessChanged, so a refusal is always the journal's.
func (r *Reader) Check(ctx context.Context) error {
	current := r.Access()
	if r.access.Load() == current {
		return nil
	}
	s, ok := r.AccessInfo(current).(*journal.Summary)
	if !ok || Decide(r.p, ActionRead, s) != nil {
		summary, err := r.g.Conversation(ctx, r.p, ActionRead, r.Conversation())
		if err != nil {
			return err
		}
		// Only what Decide needs of it, because the rest changes without an AccessChanged.
		r.SetAccessInfo(current, &journal.Summary{ID: summary.ID, Tenant: summary.Tenant, Owner: summary.Owner, Grants: summary.Grants})
	}
	r.access.Store(current)
	return nil
}

// Poll is [feed.Feed.Poll] after a Check.
func (r *Reader) Poll(ctx context.Context, c feed.Cursor, budget int) (*feed.Batch, error) {
	if err := r.Check(ctx); err != nil {
		return nil, err
	}
	return r.Feed.Poll(ctx, c, budget)
}

// PollTail is [feed.Feed.PollTail]. It also returns false if access was changed, so that Poll has to repeat the decision.
func (r *Reader) PollTail(c feed.Cursor, budget int) (b *feed.Batch, ok bool, err error) {
	if r.access.Load() != r.Access() {
		return nil, false, nil
	}
	return r.Feed.PollTail(c, budget)
}

// Next is [feed.Feed.Next] with a Check before each batch.
func (r *Reader) Next(ctx context.Context, c feed.Cursor, budget int) (*feed.Batch, error) {
	for {
		changed := r.Notify()
		b, err := r.Poll(ctx, c, budget)
		if b != nil || err != nil {
			return b, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ReadLog reads about budget bytes of the conversation's events after a seq from the journal, and none that is not published yet. It also
// returns the seq up to which they reach, and whether the log is compacted there. Without a further event that seq is after. It is for readers for which
// [feed.Feed.InOrder] returns false.
func (r *Reader) ReadLog(ctx context.Context, after int64, budget int) (events []event.Event, upto int64, isCompacted bool, err error) {
	if err := r.Check(ctx); err != nil {
		return nil, after, false, err
	}
	epoch, upto, _ := r.Cursor().Parse() // the journal may have events that aren't published yet
	s, err := r.g.journal.Read(ctx, r.Conversation(), after, budget)
	switch {
	case err != nil:
		return nil, after, false, JournalError("read log", err)
	case s.Epoch != epoch:
		err := fmt.Errorf("%w: %s: the log has another epoch", feed.ErrLost, r.Conversation())
		r.Close(err)
		return nil, after, false, err
	case s.Trimmed > after:
		return nil, after, false, fmt.Errorf("%w: events of %s after %d were removed", ErrNotFound, r.Conversation(), after)
	}
	n := 0
	for n < len(s.Events) && s.Events[n].Seq <= upto {
		n++
	}
	if s.HasMore && n == len(s.Events) && n > 0 {
		upto = s.Events[n-1].Seq
	}
	return s.Events[:n], upto, after < s.Compacted, nil
}

// ReadCompacted reads the events of a turn whose log is compacted. firstSeq is the seq of its first event. The events are the original ones
// as long as the journal has the trace of the turn. Later isMerged is true: an event contains earlier ones, and has the place of the last one.
func (r *Reader) ReadCompacted(ctx context.Context, turn string, firstSeq int64) (events []event.Event, isMerged bool, err error) {
	hasEnd := false
	for after := firstSeq - 1; !hasEnd; {
		page, upto, _, err := r.ReadLog(ctx, after, compactedPage)
		if err != nil {
			return nil, false, err
		}
		if upto <= after {
			break
		}
		after = upto
		for i := range page {
			if page[i].Turn == turn {
				events = append(events, page[i])
				hasEnd = hasEnd || page[i].Type == event.TurnEnd
			}
		}
	}
	trace, err := r.g.journal.Trace(ctx, r.Conversation(), turn)
	if errors.Is(err, journal.ErrNotFound) {
		return events, true, nil
	}
	if err != nil {
		return nil, false, JournalError("read trace", err)
	}
	if original, ok := trace.Unmerge(events); ok {
		return original, false, nil
	}
	return events, true, nil
}

// compactedPage is about how many bytes of a compacted log are read at once.
const compactedPage = 1 << 20

// HasOtherReaders reports whether another user than a principal reads a conversation now.
func (g *Gateway) HasOtherReaders(p Principal, conversation string) bool {
	return g.presence.hasOthers(conversation, p.Account())
}
