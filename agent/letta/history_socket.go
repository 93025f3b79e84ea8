package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

// row is a message of a conversation's history.
type row struct {
	ID      string          `json:"id"`
	Date    time.Time       `json:"date"`
	Type    string          `json:"message_type"`
	Otid    string          `json:"otid"` // of a user's message: its client_message_id
	Content json.RawMessage `json:"content"`
	Call    struct {
		ID string `json:"tool_call_id"`
	} `json:"tool_call"`
	CallID string `json:"tool_call_id"` // of a tool's return

	raw json.RawMessage
}

const (
	rowUser   = "user_message"
	rowReturn = "tool_return_message"
)

// key identifies a row. A server that was killed may give an id again.
func (r *row) key() string { return r.ID + "/" + r.Otid }

// text returns the user's text. The parts before it are notes of the server for its model, which readers must not see.
func (r *row) text() string {
	var text string
	if json.Unmarshal(r.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(r.Content, &parts) != nil {
		return ""
	}
	for _, p := range slices.Backward(parts) {
		if p.Type == "text" {
			if strings.HasPrefix(p.Text, "<system-reminder>") {
				return ""
			}
			return p.Text
		}
	}
	return ""
}

// copyTime is how long after a message the server may have written it again because it tried again.
const copyTime = time.Minute

// isRetryOf reports whether a user's message is one that the server has written again, since it has tried again to answer it.
func (r *row) isRetryOf(before *row) bool {
	return r.Otid != before.Otid && bytes.Equal(r.Content, before.Content) && r.Date.Sub(before.Date) < copyTime
}

// parseRows returns the rows of a list, the oldest first.
func parseRows(list []byte) (rows []*row, hasMore bool, err error) {
	var res struct {
		Success  *bool             `json:"success"`
		Error    string            `json:"error"`
		Messages []json.RawMessage `json:"messages"`
		HasMore  bool              `json:"has_more"`
	}
	if err := json.Unmarshal(list, &res); err != nil {
		return nil, false, fmt.Errorf("list of messages: %w", err)
	}
	if res.Success != nil && !*res.Success {
		if strings.HasPrefix(res.Error, "Conversation ") && strings.HasSuffix(res.Error, " not found") {
			return nil, false, nil // it was opened before, but the server has lost its messages
		}
		return nil, false, fmt.Errorf("list of messages: the Letta server refuses: %s", res.Error)
	}
	for _, raw := range slices.Backward(res.Messages) {
		r := &row{raw: raw}
		if err := json.Unmarshal(raw, r); err != nil {
			return nil, false, fmt.Errorf("message of the history: %w", err)
		}
		rows = append(rows, r)
	}
	return rows, res.HasMore, nil
}

const (
	// listRows is how many rows are read at once, and pageRows how many if those are not enough.
	listRows, pageRows = 100, 2000
)

// listMessages reads the newest messages of a conversation.
func (k *socketAgent) listMessages(ctx context.Context, l *connection, s session, limit int, other func([]byte) error) ([]byte, error) {
	id := newID()
	return l.call(ctx, k.times, id, map[string]any{
		"type": "conversation_messages_list", "request_id": id, "conversation_id": s.Conversation,
		"query": map[string]any{"limit": limit, "agent_id": s.Agent},
	}, other)
}

// exchange is a message of a user in a history, with the rows of the run that answers it.
type exchange struct {
	users []*row // the first is the one that began the run
	rows  []*row // of the answer
}

// exchanges divides a history into runs.
func exchanges(rows []*row, t *turnTracker) (runs []*exchange) {
	var current *exchange
	calls := map[string]*exchange{}
	for _, r := range rows {
		if current != nil && r.Call.ID != "" {
			calls[r.Call.ID] = current
		}
		switch {
		case r.Type == rowReturn && calls[r.CallID] != nil: // a message may have come while the tool ran
			x := calls[r.CallID]
			x.rows = append(x.rows, r)
		case r.Type != rowUser && current == nil: // its beginning is older
		case r.Type != rowUser:
			current.rows = append(current.rows, r)
		case current != nil && !t.isKnown(r.Otid) && r.isRetryOf(current.users[len(current.users)-1]):
			current.rows = nil // the try before has failed
		case current != nil && current.contains(r, t):
			current.users = append(current.users, r)
		default:
			current = &exchange{users: []*row{r}}
			runs = append(runs, current)
		}
	}
	return runs
}

// contains reports whether a user's message was handed to a run that another one had begun. A message of Leat begins a turn of
// its own in such a run, unless it was sent in a turn that runs there already.
func (x *exchange) contains(r *row, t *turnTracker) bool {
	starter, previous := x.users[0], x.users[len(x.users)-1]
	if turn, _, ok := parseClientID(r.Otid); ok {
		starterTurn, _, ok := parseClientID(starter.Otid)
		return ok && starterTurn == turn
	}
	if t.sameTurn(r.Otid, previous.Otid) {
		return true
	}
	// A server that was started again does not know its runs any more. A run that goes well does not end with what a tool gave; one
	// that ends with the call was killed with the server.
	return !t.isKnown(r.Otid) && len(x.rows) > 0 && x.rows[len(x.rows)-1].Type == rowReturn
}

// hasMessage reports whether a message is one of the run's.
func (x *exchange) hasMessage(client string) bool {
	return slices.ContainsFunc(x.users, func(r *row) bool { return r.Otid == client })
}

// isComplete reports whether a run looks as if it had come to its end.
func (x *exchange) isComplete() bool {
	return len(x.rows) > 0 && x.rows[len(x.rows)-1].Type == "assistant_message"
}

// listFrame returns the rows of the answer as a list of the server.
func (x *exchange) listFrame() []byte {
	raw := make([]json.RawMessage, 0, len(x.rows))
	for _, r := range slices.Backward(x.rows) {
		raw = append(raw, r.raw)
	}
	b, err := json.Marshal(map[string]any{"type": "conversation_messages_list_response", "messages": raw})
	if err != nil {
		return nil // they were parsed
	}
	return b
}

// Frames that tell a decoder what a history leaves out.
var (
	frameRunning = []byte(`{"type":"update_loop_status","loop_status":{"active_run_ids":["history"]}}`)
	frameEnded   = []byte(`{"type":"turn_finished","stop_reason":"end_turn"}`)
)

// noEnd is the error of a run whose end is missing in the history.
const noEnd = "the Letta server has stored no end of the answer"

// operations returns the operations of a run that has ended.
func (x *exchange) operations() ([]event.Event, error) {
	d := letta.NewCode()
	frames := [][]byte{frameRunning, x.listFrame()}
	if x.isComplete() {
		frames = append(frames, frameEnded)
	}
	var events []event.Event
	for _, f := range frames {
		ops, err := d.Decode(dialect.Frame{Data: f})
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		events = append(events, ops...)
	}
	for i := range events {
		events[i].Turn = ""
	}
	if len(events) > 0 && events[len(events)-1].Type == event.TurnEnd {
		return events, nil
	}
	return append(events, event.Event{Type: event.TurnEnd, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{Code: codeLost, Message: noEnd},
	}}), nil
}
