package letta

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

const (
	rowAnswer   = "assistant_message"
	rowRequest  = "approval_request_message"
	rowResponse = "approval_response_message"

	waitingStop = "requires_approval"
)

// storedMessage is a message as the V1 API has stored it. Messages of one step share an id.
type storedMessage struct {
	ID      string          `json:"id"`
	Date    time.Time       `json:"date"`
	Type    string          `json:"message_type"`
	Otid    string          `json:"otid"` // of a user's message: as its client has sent it
	Run     string          `json:"run_id"`
	Content json.RawMessage `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"` // of a tool's return
	Answers []struct {
		Type  string `json:"type"`
		Call  string `json:"tool_call_id"`
		Allow bool   `json:"approve"`
	} `json:"approvals"`

	raw json.RawMessage
}

// text returns what a user has written.
func (m *storedMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		default:
			texts = append(texts, "["+p.Type+"]")
		}
	}
	return strings.Join(texts, "\n\n")
}

// calls returns the ids of the tools that a message calls.
func (m *storedMessage) calls() (ids []string) {
	var calls []struct {
		ID string `json:"tool_call_id"`
	}
	if json.Unmarshal(m.Calls, &calls) != nil {
		return nil // it calls no tool
	}
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

// pageStored is how many steps of a history are read at once.
const pageStored = 50

// storedMessages reads messages, the oldest first, which come after the one of an id.
func (r *restAgent) storedMessages(ctx context.Context, query url.Values, after string, path ...string) (messages []*storedMessage, err error) {
	for {
		query.Set("order", "asc")
		query.Set("limit", strconv.Itoa(pageStored))
		if after != "" {
			query.Set("after", after)
		}
		page, err := r.storedPage(ctx, query, path...)
		if err != nil {
			return nil, err
		}
		messages = append(messages, page...)
		if distinct(page) < pageStored || page[len(page)-1].ID == after {
			return messages, nil
		}
		after = page[len(page)-1].ID
	}
}

func (r *restAgent) storedPage(ctx context.Context, query url.Values, path ...string) ([]*storedMessage, error) {
	var raw []json.RawMessage
	if err := r.callJSON(ctx, &raw, http.MethodGet, query, nil, path...); err != nil {
		return nil, err
	}
	page := make([]*storedMessage, 0, len(raw))
	for _, b := range raw {
		m := &storedMessage{raw: b}
		if err := json.Unmarshal(b, m); err != nil {
			return nil, &failure{code: codeStatus, message: "the Letta server's answer is not what its API says; is it one?", detail: err.Error()}
		}
		page = append(page, m)
	}
	return page, nil
}

func distinct(page []*storedMessage) (n int) {
	for i, m := range page {
		if i == 0 || m.ID != page[i-1].ID {
			n++
		}
	}
	return n
}

// storedTurn is what one turn shows: a run, and the runs that continued it after approvals.
type storedTurn struct {
	users []*storedMessage
	rows  []*storedMessage // of the answer, with the answers to approvals
	runs  []string

	openCalls  []string        // calls that wait for an approval
	decisions  map[string]bool // by call: allowed
	isComplete bool            // nothing more will come of it
}

// storedTurns divides a history into turns. of is the chain of each message, nil if it belongs to none.
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
			// A message that came together with the answers, to questions that were in its way.
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

// answeredCall returns the call that an answer to approvals is for.
func (m *storedMessage) answeredCall() string {
	for _, a := range m.Answers {
		if a.Call != "" {
			return a.Call
		}
	}
	return ""
}

// newest returns the newest message.
func (x *storedTurn) newest() *storedMessage {
	if n := len(x.rows); n > 0 {
		return x.rows[n-1]
	}
	return x.users[len(x.users)-1]
}

// endsRun reports whether the last step looks as if no other one follows.
func (x *storedTurn) endsRun() bool {
	return len(x.rows) > 0 && (x.newest().Type == rowAnswer || len(x.openCalls) > 0)
}

// key returns the key of the entry of the turn: the turn's own id, if a gateway of Leat has sent its message.
func (x *storedTurn) key() string {
	for _, u := range x.users {
		if turn, _, ok := parseClientID(u.Otid); ok {
			return turn
		}
	}
	return x.runs[0]
}

// keyOf returns the key of the entry of a user's message.
func keyOf(u *storedMessage) string {
	if _, message, ok := parseClientID(u.Otid); ok {
		return message
	}
	return u.ID
}

// sourceV1 is where messages of other clients come from, of which the server does not tell more.
const sourceV1 = "letta"

// messages returns the entries of what users have written.
func (x *storedTurn) messages() (entries []agent.Entry) {
	for _, u := range x.users {
		e := agent.Entry{Key: keyOf(u), At: u.Date, Source: sourceV1, Message: &agent.Message{Role: event.User, Text: u.text()}}
		if e.Key != "" && len(e.Key) <= agent.MaxKey {
			entries = append(entries, e)
		}
	}
	return entries
}

// entry returns the entry of the runs, without operations.
func (x *storedTurn) entry() agent.Entry {
	e := agent.Entry{Key: x.key(), Source: sourceV1, Run: &agent.Run{}}
	if len(x.users) > 0 {
		e.At, e.Run.Answers = x.users[0].Date, keyOf(x.users[0])
	} else {
		e.At = x.newest().Date
	}
	return e
}

// operations returns the operations of runs that are over. info is the last of them.
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
	buffered, _ := d.Close() // its error is the missing end, which is added below
	events = append(events, buffered...)
	for i := range events {
		events[i].Turn = ""
	}
	if n := len(events); n > 0 && events[n-1].Type == event.TurnEnd {
		return events, nil
	}
	return append(events, event.Event{Type: event.TurnEnd, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{Code: codeLost, Message: noEnd},
	}}), nil
}

// recordDecisions notes the answers to the approvals that a turn waits for, and returns what they change for readers.
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
