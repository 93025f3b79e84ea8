package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// PositionPrefix is the prefix of the keys of read positions. A key belongs to its conversation and contains no names.
const PositionPrefix = journalkey.ReadPrefix

// Position is how far a principal has read a conversation.
type Position struct {
	// Read is the seq of the last event that was read.
	Read int64
	// Unread is true if an agent has added a message, asked a question or ended a turn since then. It is always false for
	// conversations that are neither the principal's own nor shared with it.
	Unread bool
}

// PositionOf reports whether a key is that of a subject's read position.
func PositionOf(key, tenant, subject string) bool {
	return strings.HasPrefix(key, journalkey.Read(tenant, subject, ""))
}

// concerns reports whether a principal is notified of unread messages in a conversation: its own and those shared with it. An
// admin may read others too, but isn't notified of them.
func concerns(p Principal, s *journal.Summary) bool {
	if p.Admin {
		return s.Tenant == "" && s.Owner == ""
	}
	return s.Tenant == p.Tenant && s.Owner == p.Subject || granted(s, p) != ""
}

// Position returns how far a principal has read a conversation. s is a current summary. The caller checks access. A
// principal without a stored position has read nothing. The position is that of the principal's account, so all
// admins share one.
func (g *Gateway) Position(ctx context.Context, p Principal, s *journal.Summary) (at Position, err error) {
	v, err := g.journal.Get(ctx, journalkey.Read(p.Account().Tenant, p.Account().Subject, s.ID))
	if err == nil {
		at.Read, err = strconv.ParseInt(string(v), 10, 64)
	}
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return at, JournalError("look up read position", err)
	}
	at.Unread = s.SpokenSeq > at.Read && concerns(p, s)
	return at, nil
}

// MarkRead stores that a principal has read a conversation up to a seq; 0 means all of it. A position never moves backward, and
// one that changes nothing about what is unread is not written. It returns the position after the call. A seq above
// the head means the head. Most calls change nothing and cost two reads, without a commit.
func (g *Gateway) MarkRead(ctx context.Context, p Principal, conversation string, seq int64) (at Position, err error) {
	if seq < 0 {
		return at, reject(ReasonInvalid, "invalid seq %d: it must not be negative", seq)
	}
	s, err := g.Conversation(ctx, p, ActionRead, conversation)
	if err != nil {
		return at, err
	}
	if at, err = g.Position(ctx, p, &s); err != nil || s.SpokenSeq <= at.Read || seq != 0 && seq <= at.Read {
		return at, err
	}
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return at, err
	}
	defer w.release()
	account := p.Account()
	var position Position
	err = w.submit(ctx, func(t *tx) (err error) {
		s := t.current()
		if err := Decide(p, ActionRead, s); err != nil { // access was revoked meanwhile
			return err
		}
		if position, err = g.Position(g.life, p, s); err != nil {
			return err
		}
		to := min(seq, w.head)
		if seq == 0 {
			to = w.head
		}
		if to <= position.Read {
			return nil
		}
		position = Position{Read: to, Unread: s.SpokenSeq > to && concerns(p, s)}
		t.setKey(journalkey.Read(account.Tenant, account.Subject, w.id), strconv.AppendInt(nil, to, 10), 0)
		t.afterCommit(func() { g.positions.tell(account, w.id) })
		return nil
	})
	if err != nil {
		return at, commandError(err)
	}
	return position, nil
}

// Positions notifies of changes to a principal's positions until Close is called. The caller must close it. It
// reports no changes from before the call.
func (g *Gateway) Positions(p Principal) *Positions {
	f := &Positions{of: &g.positions, account: p.Account(), ids: map[string]struct{}{}, changed: make(chan struct{}, 1)}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.followers == nil {
		f.of.followers = map[quota.Account]map[*Positions]struct{}{}
	}
	if f.of.followers[f.account] == nil {
		f.of.followers[f.account] = map[*Positions]struct{}{}
	}
	f.of.followers[f.account][f] = struct{}{}
	return f
}

// MarkHeard stores how far a principal has heard an answer. Only the newest mark is stored. A turn that the
// conversation doesn't have is refused with ReasonUnknown. Marks aren't events: other readers don't see them.
func (g *Gateway) MarkHeard(ctx context.Context, p Principal, conversation string, h HeardMark) error {
	if h.Offset < 0 {
		return reject(ReasonInvalid, "invalid offset %d: it must not be negative", h.Offset)
	}
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return err
	}
	defer w.release()
	listener := behalf(p)
	key := journalkey.Heard(listener.Tenant, listener.Subject, w.id)
	return commandError(w.submit(ctx, func(t *tx) error {
		if err := Decide(p, ActionRead, t.current()); err != nil {
			return err
		}
		if !slices.Contains(t.current().Open, h.Turn) && !w.hasTurn(h.Turn) {
			return reject(ReasonUnknown, "no turn %q here", h.Turn)
		}
		if before, err := w.heardMark(listener); err != nil || before == h {
			return err
		}
		value, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("mark heard: %w", err)
		}
		t.setKey(key, value, 0)
		return nil
	}))
}
