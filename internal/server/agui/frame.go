// The events of the protocol.

package agui

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/internal/server"
)

// The events that are sent.
const (
	runStarted       = "RUN_STARTED"
	runFinished      = "RUN_FINISHED"
	runError         = "RUN_ERROR"
	textStart        = "TEXT_MESSAGE_START"
	textContent      = "TEXT_MESSAGE_CONTENT"
	textEnd          = "TEXT_MESSAGE_END"
	reasoningStart   = "REASONING_START"
	reasoningBegin   = "REASONING_MESSAGE_START"
	reasoningContent = "REASONING_MESSAGE_CONTENT"
	reasoningFinish  = "REASONING_MESSAGE_END"
	reasoningEnd     = "REASONING_END"
	callStart        = "TOOL_CALL_START"
	callArgs         = "TOOL_CALL_ARGS"
	callEnd          = "TOOL_CALL_END"
	callResult       = "TOOL_CALL_RESULT"
	activitySnapshot = "ACTIVITY_SNAPSHOT"
	messagesSnapshot = "MESSAGES_SNAPSHOT"
)

// Roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleTool      = "tool"
	roleReasoning = "reasoning"
	roleActivity  = "activity"
)

// frame is an event of the protocol. Its fields are named as in the protocol.
//
// Type determines which fields are used. Absent fields must be missing: null ends a run.
type frame struct {
	Type         string          `json:"type"`
	Thread       string          `json:"threadId,omitempty"`
	Run          string          `json:"runId,omitempty"`
	MessageID    string          `json:"messageId,omitempty"`
	Role         string          `json:"role,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	CallID       string          `json:"toolCallId,omitempty"`
	CallName     string          `json:"toolCallName,omitempty"`
	ActivityType string          `json:"activityType,omitempty"`
	Content      json.RawMessage `json:"content,omitempty"` // a text of a result, an object of an activity
	Messages     []message       `json:"messages,omitempty"`
	Outcome      *outcome        `json:"outcome,omitempty"`
	Message      string          `json:"message,omitempty"` // of an error, for people
	Code         string          `json:"code,omitempty"`
}

// outcome says how a run ended.
type outcome struct {
	Type       string      `json:"type"` // success, interrupt or cancelled
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

// interrupt is a question that the next run answers.
type interrupt struct {
	// ID is that of Leat's request. Reason is one of the words that the protocol suggests; the word tool_call would make CopilotKit send a result for
	// the call, which the agent's own tools don't take.
	ID       string          `json:"id"`
	Reason   string          `json:"reason"`
	Message  string          `json:"message,omitempty"`
	CallID   string          `json:"toolCallId,omitempty"`
	Schema   json.RawMessage `json:"responseSchema,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// message is a message of a thread.
type message struct {
	ID           string          `json:"id"`
	Role         string          `json:"role"`
	Name         string          `json:"name,omitempty"`
	Content      json.RawMessage `json:"content,omitempty"` // a text, parts of a user's message, or the object of an activity
	ToolCalls    []toolCall      `json:"toolCalls,omitempty"`
	CallID       string          `json:"toolCallId,omitempty"`
	Error        string          `json:"error,omitempty"`
	ActivityType string          `json:"activityType,omitempty"`

	raw json.RawMessage // the message as the client sent it
}

// toolCall is a call in a message of the assistant.
//
// The protocol allows several calls in a message. Here each one has its own, so that its place among the texts is kept.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It keeps what the client sent, which may have more fields.
func (m *message) UnmarshalJSON(b []byte) error {
	type plain message
	if err := json.Unmarshal(b, (*plain)(m)); err != nil {
		return err
	}
	m.raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (m message) MarshalJSON() ([]byte, error) {
	if m.raw != nil {
		return m.raw, nil
	}
	type plain message
	return server.Marshal(plain(m))
}

// encoder appends an event to a stream.
type encoder func(b []byte, f *frame) ([]byte, error)

// keepAlive is a comment, which clients ignore.
const keepAlive = ": keep-alive\n\n"

// appendSSE appends an event as a server-sent event.
//
// It has no id and no event name, which clients ignore, and no carriage returns, which they don't understand.
func appendSSE(b []byte, f *frame) ([]byte, error) {
	encoded, err := server.Marshal(f)
	if err != nil {
		return b, fmt.Errorf("agui: encode %s: %w", f.Type, err)
	}
	b = append(b, "data: "...)
	b = append(b, encoded...)
	return append(b, "\n\n"...), nil
}

// jsonString returns a text as a JSON string.
func jsonString(text string) json.RawMessage {
	b, err := server.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // a string can always be marshalled
	}
	return b
}
