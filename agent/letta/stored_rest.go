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

// stored is a message as the V1 API has stored it. Messages of one step share an id.
type stored struct {
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
func (m *stored) text() string {
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
func (m *stored) calls() (ids []string) {
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

// rows reads messages, the oldest first, which come after the one of an id.
func (r *rest) rows(ctx context.Context, query url.Values, after string, path ...string) (all []*stored, err error) {
	for {
		query.Set("order", "asc")
		query.Set("limit", strconv.Itoa(pageStored))
		if after != "" {
			query.Set("after", after)
		}
		page, err := r.page(ctx, query, path...)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if distinct(page) < pageStored || page[len(page)-1].ID == after {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}

func (r *rest) page(ctx context.Context, query url.Values, path ...string) ([]*stored, error) {
	var raw []json.RawMessage
	if err := r.short(ctx, &raw, http.MethodGet, query, nil, path...); err != nil {
		return nil, err
	}
	page := make([]*stored, 0, len(raw))
	for _, b := range raw {
		m := &stored{raw: b}
		if err := json.Unmarshal(b, m); err != nil {
			return nil, &failure{code: codeStatus, message: "the Letta server's answer is not what its API says; is it one?", detail: err.Error()}
		}
		page = append(page, m)
	}
	return page, nil
}

func distinct(page []*stored) (n int) {
	for i, m := range page {
		if i == 0 || m.ID != page[i-1].ID {
			n++
		}
	}
	return n
}

// chain is what one turn shows: a run, and the runs that continued it after approvals.
type chain struct {
	users []*stored
	rows  []*stored // of the answer, with the answers to approvals
	runs  []string

	open    []string        // calls that wait for an approval
	answers map[string]bool // by call: allowed
	settled bool            // nothing more will come of it
}

// chains divides a history into turns. of is the chain of each message, nil if it belongs to none.
func chains(rows []*stored) (all []*chain, of []*chain) {
	byRun, byCall := map[string]*chain{}, map[string]*chain{}
	begin := func(run string) *chain {
		x := &chain{runs: []string{run}, answers: map[string]bool{}}
		all, byRun[run] = append(all, x), x
		return x
	}
	for _, m := range rows {
		x := byRun[m.Run]
		switch {
		case m.Run == "" && m.Type != rowUser, m.Type == "system_message":
			of = append(of, nil)
			continue
		case m.Run == "":
			x = &chain{settled: true}
			all = append(all, x)
		case x == nil:
			if m.Type == rowResponse {
				x = byCall[m.answered()]
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
		of = append(of, x)
		if m.Type == rowUser {
			x.users = append(x.users, m)
			continue
		}
		x.rows = append(x.rows, m)
		for _, a := range m.Answers {
			x.answers[a.Call] = a.Allow
			x.open = slices.DeleteFunc(x.open, func(call string) bool { return call == a.Call })
		}
		if m.Type == rowRequest {
			for _, call := range m.calls() {
				byCall[call] = x
				x.open = append(x.open, call)
			}
		}
	}
	return all, of
}

// answered returns the call that an answer to approvals is for.
func (m *stored) answered() string {
	for _, a := range m.Answers {
		if a.Call != "" {
			return a.Call
		}
	}
	return ""
}

// last returns the newest message.
func (x *chain) last() *stored {
	if n := len(x.rows); n > 0 {
		return x.rows[n-1]
	}
	return x.users[len(x.users)-1]
}

// ended reports whether the last step looks as if no other one follows.
func (x *chain) ended() bool {
	return len(x.rows) > 0 && (x.last().Type == rowAnswer || len(x.open) > 0)
}

// key returns the key of the entry of the turn: the turn's own id, if a gateway of Leat has sent its message.
func (x *chain) key() string {
	for _, u := range x.users {
		if turn, _, ok := ownIDs(u.Otid); ok {
			return turn
		}
	}
	return x.runs[0]
}

// keyOf returns the key of the entry of a user's message.
func keyOf(u *stored) string {
	if _, message, ok := ownIDs(u.Otid); ok {
		return message
	}
	return u.ID
}

// sourceV1 is where messages of other clients come from, of which the server does not tell more.
const sourceV1 = "letta"

// messages returns the entries of what users have written.
func (x *chain) messages() (entries []agent.Entry) {
	for _, u := range x.users {
		e := agent.Entry{Key: keyOf(u), At: u.Date, Source: sourceV1, Message: &agent.Message{Role: event.User, Text: u.text()}}
		if e.Key != "" && len(e.Key) <= agent.MaxKey {
			entries = append(entries, e)
		}
	}
	return entries
}

// entry returns the entry of the runs, without operations.
func (x *chain) entry() agent.Entry {
	e := agent.Entry{Key: x.key(), Source: sourceV1, Run: &agent.Run{}}
	if len(x.users) > 0 {
		e.At, e.Run.Answers = x.users[0].Date, keyOf(x.users[0])
	} else {
		e.At = x.last().Date
	}
	return e
}

// operations returns the operations of runs that are over. info is the last of them.
func (x *chain) operations(info runInfo, usage []byte) ([]event.Event, error) {
	d := letta.New()
	var all []event.Event
	decode := func(frames ...dialect.Frame) error {
		for _, f := range frames {
			ops, err := d.Decode(f)
			if err != nil {
				return fmt.Errorf("history: %w", err)
			}
			all = append(all, ops...)
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
		all = append(all, answered(d, x.answers)...)
	}
	if err := decode(endOf(x.rows, info, usage)...); err != nil {
		return nil, err
	}
	rest, _ := d.Close() // its error is the missing end, which is added below
	all = append(all, rest...)
	for i := range all {
		all[i].Turn = ""
	}
	if n := len(all); n > 0 && all[n-1].Type == event.TurnEnd {
		return all, nil
	}
	return append(all, event.Event{Type: event.TurnEnd, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{Code: codeLost, Message: noEnd},
	}}), nil
}

// answered notes the answers to the approvals that a turn waits for, and returns what they change for readers.
func answered(d *letta.Decoder, answers map[string]bool) (ops []event.Event) {
	for _, w := range d.Waiting() {
		a := &event.Answer{ID: w.Request, Decision: event.Deny}
		if answers[w.Call] {
			a.Decision = event.Approve
		}
		ops = append(ops, event.Event{Type: event.TurnResume, Body: &event.Body{Answer: a}})
		ops = append(ops, d.Answered(w.Request, answers[w.Call])...)
	}
	d.Continue()
	return ops
}
