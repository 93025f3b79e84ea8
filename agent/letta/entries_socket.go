// From the rows of a history to the entries of a follower, for the App Server.

package letta

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// source is the Source of entries that other clients of the App Server have made. The server doesn't say which client it was.
const source = "letta-code"

// gather converts the runs after a cursor to entries, and returns the cursor after them. The cursor names the row of a user's
// message, not of an answer: an exchange whose first message is at or before the cursor is recorded already, and only messages
// that were added to it later are new. If the cursor's row is not in the
// history any more, it continues after the cursor's date. It stops before a run whose outcome is unclear, with unsure set, so
// that later runs are never recorded before it.
func (w *socketWatch) gather(exchanges []*exchange, at socketCursor) (entries []agent.Entry, next socketCursor, unsure bool) {
	next = at
	hasCursor := slices.ContainsFunc(exchanges, func(x *exchange) bool {
		return slices.ContainsFunc(x.users, func(r *row) bool { return r.key() == at.Row })
	})
	isAfterCursor := !hasCursor
	for i, x := range exchanges {
		isNew := false // the run started after the cursor
		for n, r := range x.users {
			switch {
			case !isAfterCursor:
				isAfterCursor = r.key() == at.Row
				continue
			case !hasCursor && at.Row != "" && !r.Date.After(at.Date):
				continue
			}
			isNew = isNew || n == 0
			if e, ok := messageEntry(r); ok {
				entries = append(entries, e)
			}
		}
		last := x.users[len(x.users)-1]
		if isNew {
			e, isKnown := w.runEntry(x, i == len(exchanges)-1)
			if !isKnown {
				return entries, next, true
			}
			if e.Run != nil {
				entries = append(entries, e)
			}
		}
		if isAfterCursor && (hasCursor || at.Row == "" || last.Date.After(at.Date)) {
			next.Row, next.Date = last.key(), last.Date
		}
	}
	return entries, next, false
}

// messageEntry returns the entry of a user's message, and false if its key is too long. The key of a message that Leat has sent
// is Leat's own id of it, so the gateway recognizes the message and doesn't show it twice.
func messageEntry(r *row) (agent.Entry, bool) {
	e := agent.Entry{Key: r.key(), At: r.Date, Source: source, Message: &agent.Message{Role: event.User, Text: r.text()}}
	if _, message, ok := parseClientID(r.Otid); ok {
		e.Key = message
	}
	return e, len(e.Key) <= agent.MaxKey
}

// runEntry returns the entry of a run. A run that has ended is recorded with its events; one that is running is recorded with
// the state from which Observe shows it live. e.Run is nil for a run that is not recorded: a turn of this process shows it
// already, or it has no answer.
//
// isKnown is false if the outcome is unclear: the history has the message, but neither an answer nor a status that names the
// run which answers it. After times.patience such a message counts as unanswered.
func (w *socketWatch) runEntry(x *exchange, last bool) (e agent.Entry, isKnown bool) {
	starter := x.users[0]
	message, _ := messageEntry(starter)
	e = agent.Entry{Key: "run/" + starter.key(), At: starter.Date, Source: source}
	if turn, _, ok := parseClientID(starter.Otid); ok {
		e.Key = turn
	}
	if len(e.Key) > agent.MaxKey {
		return agent.Entry{}, true
	}
	run := &agent.Run{Answers: message.Key}
	// Only the last run of a history can be in progress; an earlier one without an end has failed.
	switch {
	case last && w.agent.ownsRun(starter.Otid):
		return agent.Entry{}, true
	// The server is busy with another message, which the history doesn't have yet. This one may have failed, or may be next.
	case last && w.turns.isBusy() && w.turns.current != "" && !x.hasMessage(w.turns.current) && !w.turns.sameTurn(starter.Otid, w.turns.current):
		return e, w.hasWaited(starter)
	case last && w.turns.isBusy():
		b, err := json.Marshal(&state{Session: w.session, SendCount: 1, ObservedMessage: starter.Otid, ObservedRow: starter.key()})
		if err != nil {
			return agent.Entry{}, true // can't happen: the state has only strings
		}
		run.State = b
	// The server is idle and the run has no end: the end may not be stored yet.
	case last && !x.isComplete() && !w.hasWaited(starter):
		return e, false
	case len(x.rows) == 0:
		return agent.Entry{}, true
	default:
		ops, err := x.operations()
		if err != nil {
			w.agent.log().Warn("another client's run in the history can't be decoded", "conversation", w.conversation, "error", err)
			return agent.Entry{}, true
		}
		run.Ops = ops
	}
	delete(w.unclearSince, starter.key())
	e.Run = run
	return e, true
}

// hasWaited reports whether the outcome of a message has been unclear for times.patience. The first call starts the time.
func (w *socketWatch) hasWaited(r *row) bool {
	since, ok := w.unclearSince[r.key()]
	if !ok {
		since = time.Now()
		w.unclearSince[r.key()] = since
	}
	if time.Since(since) < w.agent.times.patience {
		return false
	}
	delete(w.unclearSince, r.key())
	return true
}

// ownsRun reports whether the message was sent by a turn of this process that is still running.
func (k *socketAgent) ownsRun(client string) bool {
	turn, _, ok := parseClientID(client)
	if !ok {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.activeTurns[turn] != nil
}
