package gateway

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// PositionPrefix begins the keys of read positions. Each belongs to its conversation and contains no name.
const PositionPrefix = journalkey.ReadPrefix

// Position is how far a principal has read a conversation.
type Position struct {
	// Read is a seq: what was said up to it is read.
	Read int64
	// Unread says that an agent has said something since, asked something, or ended a turn. It is said only of conversations
	// that are the principal's own or shared with it.
	Unread bool
}

// PositionOf reports whether a key is that of a read position of a subject.
func PositionOf(key, tenant, subject string) bool {
	return strings.HasPrefix(key, journalkey.Read(tenant, subject, ""))
}

// concerns reports whether a conversation is a principal's own, or shared with it: an admin may read what is neither.
func concerns(p Principal, s *journal.Summary) bool {
	if p.Admin {
		return s.Tenant == "" && s.Owner == ""
	}
	return s.Tenant == p.Tenant && s.Owner == p.Subject || granted(s, p) != ""
}

// Position tells how far a principal has read a conversation that it may read, as its summary is known.
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

// MarkRead says that a principal has read a conversation up to a seq; 0 is all that there is. A position never falls, and one
// that changes nothing about what is unread is not written.
func (g *Gateway) MarkRead(ctx context.Context, p Principal, conversation string, seq int64) (at Position, err error) {
	if seq < 0 {
		return at, reject(ReasonInvalid, "seq %d is no place in a conversation", seq)
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
	err = w.submit(ctx, true, func(t *tx) (err error) {
		s := t.current()
		if err := Decide(p, ActionRead, s); err != nil { // it was taken back meanwhile
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

// Positions follows a principal's positions until Close is called.
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
