package letta

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// source is where messages of other clients come from, of which the App Server does not tell more.
const source = "letta-code"

// gather makes entries of what came after a cursor, and returns the cursor after them. unsure says that the history does not tell
// yet what becomes of a message.
func (w *watch) gather(all []*exchange, at cursor) (entries []agent.Entry, next cursor, unsure bool) {
	next = at
	found := slices.ContainsFunc(all, func(x *exchange) bool {
		return slices.ContainsFunc(x.users, func(r *row) bool { return r.key() == at.Row })
	})
	passed := !found
	for i, x := range all {
		fresh := false // the run began behind the cursor
		for n, r := range x.users {
			switch {
			case !passed:
				passed = r.key() == at.Row
				continue
			case !found && at.Row != "" && !r.Date.After(at.Date):
				continue
			}
			fresh = fresh || n == 0
			if e, ok := messageEntry(r); ok {
				entries = append(entries, e)
			}
		}
		last := x.users[len(x.users)-1]
		if fresh {
			e, known := w.runEntry(x, i == len(all)-1)
			if !known {
				return entries, next, true
			}
			if e.Run != nil {
				entries = append(entries, e)
			}
		}
		if passed && (found || at.Row == "" || last.Date.After(at.Date)) {
			next.Row, next.Date = last.key(), last.Date
		}
	}
	return entries, next, false
}

// messageEntry returns the entry of a user's message. Those that Leat sent have their own ids, so that the gateway knows them.
func messageEntry(r *row) (agent.Entry, bool) {
	e := agent.Entry{Key: r.key(), At: r.Date, Source: source, Message: &agent.Message{Role: event.User, Text: r.text()}}
	if _, message, ok := ownIDs(r.Otid); ok {
		e.Key = message
	}
	return e, len(e.Key) <= agent.MaxKey
}

// runEntry returns the entry of a run, without one if the history has no answer. known is false if the history does not tell yet what becomes
// of its message.
func (w *watch) runEntry(x *exchange, last bool) (e agent.Entry, known bool) {
	first := x.users[0]
	message, _ := messageEntry(first)
	e = agent.Entry{Key: "run/" + first.key(), At: first.Date, Source: source}
	if turn, _, ok := ownIDs(first.Otid); ok {
		e.Key = turn
	}
	if len(e.Key) > agent.MaxKey {
		return agent.Entry{}, true
	}
	run := &agent.Run{Answers: message.Key}
	switch {
	case last && w.k.runs(first.Otid): // as a turn of this process
		return agent.Entry{}, true
	case last && w.turns.busy() && w.turns.current != "" && !x.has(w.turns.current) && !w.turns.together(first.Otid, w.turns.current):
		return e, w.doubted(first)
	case last && w.turns.busy():
		b, err := json.Marshal(&state{Session: w.session, Sent: 1, Message: first.Otid, Row: first.key()})
		if err != nil {
			return agent.Entry{}, true // it is made of strings
		}
		run.State = b
	case last && !x.whole() && !w.doubted(first):
		return e, false
	case len(x.rows) == 0:
		return agent.Entry{}, true
	default:
		ops, err := x.operations()
		if err != nil {
			w.k.log().Warn("a run of another client can't be read", "conversation", w.conversation, "error", err)
			return agent.Entry{}, true
		}
		run.Ops = ops
	}
	delete(w.puzzled, first.key())
	e.Run = run
	return e, true
}

// doubted reports whether it has not been known for long what becomes of a message.
func (w *watch) doubted(r *row) bool {
	since, ok := w.puzzled[r.key()]
	if !ok {
		since = time.Now()
		w.puzzled[r.key()] = since
	}
	if time.Since(since) < w.k.times.patience {
		return false
	}
	delete(w.puzzled, r.key())
	return true
}

// runs reports whether a turn of this process has sent a message, and runs.
func (k *socket) runs(client string) bool {
	turn, _, ok := ownIDs(client)
	if !ok {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.live[turn] != nil
}
