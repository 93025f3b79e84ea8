package letta

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// Types of messages.
const (
	typeUser      = "user_message"
	typeSystem    = "system_message"
	typeAssistant = "assistant_message"
	typeReasoning = "reasoning_message"
	typeCall      = "tool_call_message"
	typeReturn    = "tool_return_message"
	typeApproval  = "approval_request_message"
	typePing      = "ping"
	typeStop      = "stop_reason"
	typeUsage     = "usage_statistics"
	typeError     = "error_message"
)

// Reasons for the end of a run. After requires_approval, the client's next request continues it.
const (
	stopEnd       = "end_turn"
	stopLength    = "max_tokens_exceeded"
	stopApproval  = "requires_approval"
	stopCancelled = "cancelled"
	stopError     = "error"
)

// message is a message of Letta, or a frame of a run. Type determines which fields are used. Texts are deltas in a frame, and whole in a list.
type message struct {
	// ID is that of the part, and Otid the same without its prefix. Clients match what they have streamed with a list by either.
	ID string `json:"id,omitempty"`
	// Date is needed: the client for Python takes a message without one for a message of another type.
	Date string `json:"date,omitempty"`
	Type string `json:"message_type"`
	Otid string `json:"otid,omitempty"`
	// Step is that of the message which the part belongs to. Clients group by it.
	Step  string `json:"step_id,omitempty"`
	Run   string `json:"run_id,omitempty"`
	SeqID int64  `json:"seq_id,omitempty"`

	// Content is a text, of a user, of the system, or of the assistant. Letta itself sends lists of parts in some cases; clients accept both.
	Content string `json:"content,omitempty"`
	// Of reasoning. Source says that the model itself has written it.
	Source    string `json:"source,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`

	Call *call `json:"tool_call,omitempty"`
	// Calls is the same object in a frame, and a list in a list of messages.
	Calls any `json:"tool_calls,omitempty"`

	// Of a result. Return is a pointer because an empty result must be there, and Returns repeats it in the newer form.
	CallID string `json:"tool_call_id,omitempty"`
	// Status is success or error.
	Status  string       `json:"status,omitempty"`
	Return  *string      `json:"tool_return,omitempty"`
	Returns []toolReturn `json:"tool_returns,omitempty"`

	// Stop is one of the reasons above.
	Stop string `json:"stop_reason,omitempty"`

	// Of an error. Clients show Message, or Detail if they throw.
	ErrorType string `json:"error_type,omitempty"`
	Message   string `json:"message,omitempty"`
	Detail    string `json:"detail,omitempty"`

	*usage
}

// call is a call of a tool. In a frame, Arguments is a piece of the JSON text.
type call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	ID        string `json:"tool_call_id"`
}

// toolReturn is the result of a call. Its type is tool.
type toolReturn struct {
	Type   string `json:"type"`
	CallID string `json:"tool_call_id"`
	Status string `json:"status"`
	Return string `json:"tool_return"`
}

// usage is the token usage of a run. Letta counts steps of a model; a turn of Leat is one, because most agents don't tell how many they took.
type usage struct {
	Completion int64    `json:"completion_tokens"`
	Prompt     int64    `json:"prompt_tokens"`
	Total      int64    `json:"total_tokens"`
	Cached     int64    `json:"cached_input_tokens"`
	Reasoning  int64    `json:"reasoning_tokens"`
	Steps      int      `json:"step_count"`
	Runs       []string `json:"run_ids"`
}

// endOfStream is the last frame. Clients end at the end of the body and ignore it; those of other APIs wait for it.
const endOfStream = "data: [DONE]\n\n"

// appendFrame appends a frame. An error has an event name, so that clients throw it.
func appendFrame(b []byte, m *message) ([]byte, error) {
	encoded, err := server.Marshal(m)
	if err != nil {
		return b, fmt.Errorf("letta: encode %s: %w", m.Type, err)
	}
	if m.Type == typeError {
		b = append(b, "event: error\n"...)
	}
	b = append(b, "data: "...)
	b = append(b, encoded...)
	return append(b, "\n\n"...), nil
}

// dateOf returns a time in epoch milliseconds as Letta writes it, or "" for none. It has all three digits, so that dates are sorted as texts.
func dateOf(millis int64) string {
	if millis == 0 {
		return ""
	}
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// argumentsOf returns JSON arguments as a text, an empty object for none.
func argumentsOf(data json.RawMessage) string {
	if len(data) == 0 {
		return "{}"
	}
	return string(data)
}
