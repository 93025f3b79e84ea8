package gateway

import (
	"errors"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// tx collects what the jobs of one commit add. It knows the conversation before the commit, and the writer not at
// all. Jobs add to it in turn, and each sees what those before it have added. One goroutine uses it, and nothing of
// it is visible before the commit.
type tx struct {
	conversation string
	head         int64            // seq of the last event before this commit
	committed    *journal.Summary // before this commit; not to be changed
	limits       limits
	events       []event.Event
	keys         []journal.KeyValue
	summary      *journal.Summary
	terminal     bool     // it ends a turn or the conversation, see journal.Batch
	isBackfill   bool     // its events are older messages from elsewhere: no webhook, no unread mark
	trace        string   // traceparent of the job that runs
	after        []func() // run once the commit is shown
	reservations []*quota.Reservation
	// unshared is true if a subject loses access. Its readers are disconnected before the command returns.
	unshared   bool
	endedTurns []string // turns
	// outside contains the turns that the tx adds from start to end: runs that their upstream began and that are over.
	outside map[string]bool
	// restored contains the turns that the tx adds once more. Their ends were billed and counted before.
	restored map[string]bool
}

// add appends an event with the next seq of the log, and returns the seq. If the event has no time, it gets the
// current one. Seqs have no gaps, so what add returns is right if the commit succeeds.
func (t *tx) add(e event.Event) int64 {
	e.Seq = t.head + int64(len(t.events)) + 1
	if e.At == 0 {
		e.At = nowMillis()
	}
	t.events = append(t.events, e)
	if !t.isBackfill && speaks(&e) {
		t.edit().SpokenSeq = e.Seq
	}
	return e.Seq
}

// setKey writes a key with the commit, or deletes it if value is nil. expires is in epoch milliseconds; if it is 0, the key
// lives as long as the conversation. If a key is set twice, the last value counts.
func (t *tx) setKey(key string, value []byte, expires int64) {
	for i := range t.keys {
		if t.keys[i].Key == key {
			t.keys[i].Value, t.keys[i].Expires = value, expires
			return
		}
	}
	t.keys = append(t.keys, journal.KeyValue{Key: key, Value: value, Expires: expires})
}

// edit returns the summary for changes. It is written with the commit. The lists that jobs change are copied, because
// other goroutines read those of the committed summary.
func (t *tx) edit() *journal.Summary {
	if t.summary == nil {
		s := *t.committed
		s.Open = append([]string(nil), s.Open...)
		s.WaitingTurns = append([]string(nil), s.WaitingTurns...)
		t.summary = &s
	}
	return t.summary
}

// current returns the summary as this tx will leave it. It must not be changed.
func (t *tx) current() *journal.Summary {
	if t.summary != nil {
		return t.summary
	}
	return t.committed
}

// afterCommit calls fn in the writer's goroutine when the commit is durable and shown. fn must not block.
func (t *tx) afterCommit(fn func()) { t.after = append(t.after, fn) }

// speaks reports whether an event makes a conversation unread: messages of agents, questions, and ends of turns, except those
// that a user stopped.
func speaks(e *event.Event) bool {
	b := e.Get()
	switch e.Type {
	case event.MessageAdd:
		return b.Role != event.User
	case event.TurnWait:
		return true
	case event.TurnEnd:
		return b.Outcome != event.Cancelled
	}
	return false
}

// reserve reserves what a job needs from the user's quota. A job calls it after all its other checks, so that a command that is
// refused or repeated uses nothing. The reservation is cancelled if the job or the commit fails.
func (t *tx) reserve(p Principal, n quota.Need) error {
	n.Conversation = t.conversation
	s := t.current()
	n.Owner = quota.Account{Tenant: s.Tenant, Subject: s.Owner}
	reservation, err := t.limits.quota.Take(p.Account(), n)
	if err != nil {
		return t.limits.rejection(err)
	}
	t.reservations = append(t.reservations, reservation)
	return nil
}

// cancelReservations cancels the reservations from the n-th on, which belong to a job that has failed. It keeps those
// of the other jobs in the commit.
func (t *tx) cancelReservations(n int) {
	for _, g := range t.reservations[n:] {
		g.Cancel()
	}
	t.reservations = t.reservations[:n]
}

// finishReservations confirms or cancels the tx's reservations once its commit has ended with err. If it is unknown whether the
// commit succeeded, they are confirmed: the writer gives the conversation up, and the next writer counts its turns again.
func (t *tx) finishReservations(err error) {
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		t.cancelReservations(0)
		return
	}
	for _, g := range t.reservations {
		g.Commit()
	}
	if err == nil { // before readers see the ends, because they may start another turn at once
		for _, turn := range t.endedTurns {
			t.limits.quota.End(turn)
		}
	}
}

// deleteTurnKeys deletes the keys of a turn that are needed only while it is unfinished.
func (t *tx) deleteTurnKeys(id string) {
	t.setKey(journalkey.TurnState(id), nil, 0)
	t.setKey(journalkey.TurnMapper(id), nil, 0)
	t.setKey(journalkey.TurnPushed(id), nil, 0)
	t.setKey(journalkey.TurnObserved(id), nil, 0)
	t.setKey(journalkey.TurnWaited(id), nil, 0)
}

// isPlain reports whether nothing but the feed and its watchers follows from the commit. Such a commit, which is what
// most text is, can be finished by the journal's goroutine.
func (t *tx) isPlain() bool {
	return t.summary == nil && len(t.after)+len(t.reservations)+len(t.endedTurns) == 0 && !t.terminal && !t.isBackfill && !t.unshared
}

// lastSeq returns the seq of the last event as this tx will leave the log.
func (t *tx) lastSeq() int64 { return t.head + int64(len(t.events)) }

// isOpen reports whether a turn is unfinished as this tx will leave it.
func (t *tx) isOpen(turn string) bool { return slices.Contains(t.current().Open, turn) }

// setWaiting records whether a turn waits for a person.
func (t *tx) setWaiting(turn string, isWaiting bool) {
	if slices.Contains(t.current().WaitingTurns, turn) == isWaiting {
		return
	}
	s := t.edit()
	if isWaiting {
		s.WaitingTurns = append(s.WaitingTurns, turn)
	} else {
		s.WaitingTurns = slices.DeleteFunc(s.WaitingTurns, func(id string) bool { return id == turn })
	}
}

// closeTurn removes a turn, whose end is in the commit, from the open ones. The caller adds the end of the turn
// itself.
func (t *tx) closeTurn(id string) {
	s := t.edit()
	s.Open = slices.DeleteFunc(s.Open, func(open string) bool { return open == id })
	t.setWaiting(id, false)
	s.Updated = nowMillis()
	t.terminal = true
	t.setKey(journalkey.TurnPrincipal(id), nil, 0)
	t.setKey(journalkey.TurnTools(id), nil, 0)
	t.endedTurns = append(t.endedTurns, id)
}
