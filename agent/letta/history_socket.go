// The rows of a history as the App Server returns them, and their division into exchanges: a message with everything that answers
// it.

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

// row is a message in the App Server's history of a conversation.
type row struct {
	ID      string          `json:"id"`
	Date    time.Time       `json:"date"`
	Type    string          `json:"message_type"`
	Otid    string          `json:"otid"` // for a user's message: its client_message_id
	Content json.RawMessage `json:"content"`
	Call    struct {
		ID string `json:"tool_call_id"`
	} `json:"tool_call"`
	CallID string `json:"tool_call_id"` // for a tool's result: the call

	raw json.RawMessage
}

const (
	rowUser   = "user_message"
	rowReturn = "tool_return_message"
)

// key identifies a row. The id alone is not enough: a server that was killed may assign an id twice.
func (r *row) key() string { return r.ID + "/" + r.Otid }

// text returns the text of a user's message. The server prepends notes for its model, such as reminders; they are separate
// parts, and readers must not see them.
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

// copyTime limits the time between a message and its copy. The server writes a copy when it retries to answer the message.
const copyTime = time.Minute

// isRetryOf reports whether the server has written the message as a copy of previous, to answer that again.
func (r *row) isRetryOf(before *row) bool {
	return r.Otid != before.Otid && bytes.Equal(r.Content, before.Content) && r.Date.Sub(before.Date) < copyTime
}

// parseRows returns the rows of a response that lists messages, the oldest first. A conversation that the server has never
// saved, because its process ended too early, has no rows.
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
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("list of messages: the Letta server refused the request: %s", res.Error)
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
	// listRows is the usual number of rows to read; pageRows is the number if those don't reach back far enough.
	listRows, pageRows = 100, 2000
)

// listMessages reads up to limit of the newest messages of a conversation and returns the server's response. Frames before it
// are passed to other.
func (k *socketAgent) listMessages(ctx context.Context, l *connection, s session, limit int, other func([]byte) error) ([]byte, error) {
	id := newID()
	return l.call(ctx, k.times, id, map[string]any{
		"type": "conversation_messages_list", "request_id": id, "conversation_id": s.Conversation,
		"query": map[string]any{"limit": limit, "agent_id": s.Agent},
	}, other)
}

// exchange is a run in a history: the user's messages that it answers, and the rows of its answer.
type exchange struct {
	users []*row // the first one started the run
	rows  []*row
}

// exchanges divides a history into runs. The tracker decides whether a message started a run or was added to the running one. A
// tool's result belongs to the run of its call, even if another message came in between; rows before the first user's message
// belong to a run whose start isn't in the history, and are dropped.
func exchanges(rows []*row, t *turnTracker) (runs []*exchange) {
	var current *exchange
	calls := map[string]*exchange{}
	for _, r := range rows {
		if current != nil && r.Call.ID != "" {
			calls[r.Call.ID] = current
		}
		switch {
		case r.Type == rowReturn && calls[r.CallID] != nil: // a message may have arrived while the tool ran
			x := calls[r.CallID]
			x.rows = append(x.rows, r)
		case r.Type != rowUser && current == nil:
		case r.Type != rowUser:
			current.rows = append(current.rows, r)
		case current != nil && !t.isKnown(r.Otid) && r.isRetryOf(current.users[len(current.users)-1]):
			current.rows = nil // the rows so far are of the attempt that failed
		case current != nil && current.contains(r, t):
			current.users = append(current.users, r)
		default:
			current = &exchange{users: []*row{r}}
			runs = append(runs, current)
		}
	}
	return runs
}

// contains reports whether a user's message was added to the run, instead of starting another one. A message of Leat starts a
// run, unless its turn is the one that the run belongs to.
func (x *exchange) contains(r *row, t *turnTracker) bool {
	starter, previous := x.users[0], x.users[len(x.users)-1]
	if turn, _, ok := parseClientID(r.Otid); ok {
		starterTurn, _, ok := parseClientID(starter.Otid)
		return ok && starterTurn == turn
	}
	if t.sameTurn(r.Otid, previous.Otid) {
		return true
	}
	// After a restart the server doesn't report old runs. A complete run doesn't end with a tool's result, so the message that
	// follows one was added to the run. A run that ends with a tool's call was killed together with the server.
	return !t.isKnown(r.Otid) && len(x.rows) > 0 && x.rows[len(x.rows)-1].Type == rowReturn
}

// hasMessage reports whether the run answers the message with the given client_message_id.
func (x *exchange) hasMessage(client string) bool {
	return slices.ContainsFunc(x.users, func(r *row) bool { return r.Otid == client })
}

// isComplete reports whether the run ends with text. The history has no record of a run's end, so this is the best evidence.
func (x *exchange) isComplete() bool {
	return len(x.rows) > 0 && x.rows[len(x.rows)-1].Type == "assistant_message"
}

// listFrame returns the rows of the answer as a response of the server, the newest first, so that a decoder accepts them.
func (x *exchange) listFrame() []byte {
	raw := make([]json.RawMessage, 0, len(x.rows))
	for _, r := range slices.Backward(x.rows) {
		raw = append(raw, r.raw)
	}
	b, err := json.Marshal(map[string]any{"type": "conversation_messages_list_response", "messages": raw})
	if err != nil {
		return nil // can't happen: raw was valid JSON
	}
	return b
}

// Frames for a decoder that reads a history, which doesn't contain the start and the end of runs.
var (
	frameRunning = []byte(`{"type":"update_loop_status","loop_status":{"active_run_ids":["history"]}}`)
	frameEnded   = []byte(`{"type":"turn_finished","stop_reason":"end_turn"}`)
)

// noEnd is the error of a run whose end is not in the history.
const noEnd = "the Letta server has stored no end of the answer"

// operations returns the events of a run that has ended. If its end is missing, the events end it as interrupted.
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
	return withEnd(events), nil
}

// withEnd returns the events of a stored turn as those of a turn of Leat. A turn without an end is interrupted.
func withEnd(events []event.Event) []event.Event {
	for i := range events {
		events[i].Turn = ""
	}
	if len(events) > 0 && events[len(events)-1].Type == event.TurnEnd {
		return events
	}
	return append(events, event.Event{Type: event.TurnEnd, Body: &event.Body{
		Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{Code: codeLost, Message: noEnd},
	}})
}
