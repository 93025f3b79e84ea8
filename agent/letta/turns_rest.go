package letta

import (
	"fmt"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

// storedTurn is a turn in a history: a run, and the runs that continued it after approvals.
type storedTurn struct {
	users []*storedMessage
	rows  []*storedMessage // the answer, including the approvals
	runs  []string         // in the order in which they started; empty for a user's message without a run

	openCalls  []string        // tool calls that wait for an approval
	decisions  map[string]bool // by tool call: true if approved
	isComplete bool            // the turn is recorded completely, so the cursor may move past it
}

// storedTurns divides a history into turns. rows are in the order of time. A turn continues in another run after each set of
// approvals, so rows are assigned by their run, and the first row of an unknown run by the tool call that it answers. turnOf has
// the turn of each row, or nil if the row belongs to no turn, such as a system message.
//
// A run that starts with approvals continues the turn that asked for them. A run that has a user's message besides approvals
// starts a turn: its client answered old requests only because the server accepts no message while they are open.
func storedTurns(rows []*storedMessage) (turns []*storedTurn, turnOf []*storedTurn) {
	byRun, byCall := map[string]*storedTurn{}, map[string]*storedTurn{}
	begin := func(run string) *storedTurn {
		x := &storedTurn{runs: []string{run}, decisions: map[string]bool{}}
		turns, byRun[run] = append(turns, x), x
		return x
	}
	for _, m := range rows {
		x := byRun[m.Run]
		switch {
		case m.Run == "" && m.Type != rowUser, m.Type == "system_message":
			turnOf = append(turnOf, nil)
			continue
		case m.Run == "":
			x = &storedTurn{isComplete: true}
			turns = append(turns, x)
		case x == nil:
			if m.Type == rowResponse {
				x = byCall[m.answeredCall()]
			}
			if x == nil {
				x = begin(m.Run)
			} else {
				x.runs, byRun[m.Run] = append(x.runs, m.Run), x
			}
		case m.Type == rowUser && x.runs[0] != m.Run:
			// The message was sent together with the approvals.
			x.runs = slices.DeleteFunc(x.runs, func(run string) bool { return run == m.Run })
			x = begin(m.Run)
		}
		turnOf = append(turnOf, x)
		if m.Type == rowUser {
			x.users = append(x.users, m)
			continue
		}
		x.rows = append(x.rows, m)
		for _, a := range m.Answers {
			x.decisions[a.Call] = a.Allow
			x.openCalls = slices.DeleteFunc(x.openCalls, func(call string) bool { return call == a.Call })
		}
		if m.Type == rowRequest {
			for _, call := range m.calls() {
				byCall[call] = x
				x.openCalls = append(x.openCalls, call)
			}
		}
	}
	return turns, turnOf
}

// newest returns the turn's last message.
func (x *storedTurn) newest() *storedMessage {
	if n := len(x.rows); n > 0 {
		return x.rows[n-1]
	}
	return x.users[len(x.users)-1]
}

// endsRun reports whether the last message looks like the end of a run: an answer, or a request for approval.
func (x *storedTurn) endsRun() bool {
	return len(x.rows) > 0 && (x.newest().Type == rowAnswer || len(x.openCalls) > 0)
}

// key returns the key of the turn's entry: Leat's own turn id if Leat has sent the message, so that the gateway recognizes the
// turn, or else the first run's id.
func (x *storedTurn) key() string {
	for _, u := range x.users {
		if turn, _, ok := parseClientID(u.Otid); ok {
			return turn
		}
	}
	return x.runs[0]
}

// keyOf returns the key of the entry of a user's message: Leat's own message id if Leat has sent it, or else the server's.
func keyOf(u *storedMessage) string {
	if _, message, ok := parseClientID(u.Otid); ok {
		return message
	}
	return u.ID
}

// sourceV1 is the Source of entries that other clients of the V1 API have made. The server doesn't say which client it was.
const sourceV1 = "letta"

// messages returns the entries of the users' messages.
func (x *storedTurn) messages() (entries []agent.Entry) {
	for _, u := range x.users {
		e := agent.Entry{Key: keyOf(u), At: u.Date, Source: sourceV1, Message: &agent.Message{Role: event.User, Text: u.text()}}
		if e.Key != "" && len(e.Key) <= agent.MaxKey {
			entries = append(entries, e)
		}
	}
	return entries
}

// entry returns the entry of the answer, without its events.
func (x *storedTurn) entry() agent.Entry {
	e := agent.Entry{Key: x.key(), Source: sourceV1, Run: &agent.Run{}}
	if len(x.users) > 0 {
		e.At, e.Run.Answers = x.users[0].Date, keyOf(x.users[0])
	} else {
		e.At = x.newest().Date
	}
	return e
}

// operations returns the events of a turn that has ended. info describes its last run. Stored messages have no end of steps, so
// a stop reason is decoded before each set of approvals and at the end. If the last run's end is missing, the events end the
// turn as interrupted.
func (x *storedTurn) operations(run runInfo, usage []byte) ([]event.Event, error) {
	d := letta.New()
	var events []event.Event
	decode := func(frames ...dialect.Frame) error {
		for _, f := range frames {
			ops, err := d.Decode(f)
			if err != nil {
				return fmt.Errorf("history: %w", err)
			}
			events = append(events, ops...)
		}
		return nil
	}
	for _, m := range x.rows {
		if m.Type != rowResponse {
			if err := decode(dialect.Frame{Data: m.raw}); err != nil {
				return nil, err
			}
			continue
		}
		if err := decode(endOf(nil, runInfo{Stop: waitingStop}, nil)...); err != nil {
			return nil, err
		}
		events = append(events, recordDecisions(d, x.decisions)...)
	}
	if err := decode(endOf(x.rows, run, usage)...); err != nil {
		return nil, err
	}
	buffered, _ := d.Close() // its error says that the end is missing, which is added below
	events = append(events, buffered...)
	return withEnd(events), nil
}

// recordDecisions records the answers to the approvals that d waits for, and returns the events that show them. A call without
// a decision counts as denied.
func recordDecisions(d *letta.Decoder, answers map[string]bool) (ops []event.Event) {
	for _, w := range d.PendingApprovals() {
		a := &event.Answer{ID: w.Request, Decision: event.Deny}
		if answers[w.Call] {
			a.Decision = event.Approve
		}
		ops = append(ops, event.Event{Type: event.TurnResume, Body: &event.Body{Answer: a}})
		ops = append(ops, d.RecordAnswer(w.Request, answers[w.Call])...)
	}
	d.ContinueTurn()
	return ops
}
