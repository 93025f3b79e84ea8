package agui

import "encoding/json"

// frame is any event. Texts are raw, because a character may be split between two of them.
type frame struct {
	Type         string          `json:"type"`
	RunID        string          `json:"runId"`
	MessageID    string          `json:"messageId"`
	Role         string          `json:"role"`
	Delta        json.RawMessage `json:"delta"`
	ToolCallID   string          `json:"toolCallId"`
	ToolCallName string          `json:"toolCallName"`
	Content      json.RawMessage `json:"content"`
	Error        json.RawMessage `json:"error"`
	StepName     string          `json:"stepName"`
	Messages     []message       `json:"messages"`
	Outcome      json.RawMessage `json:"outcome"`
	Message      string          `json:"message"` // of an error
	Code         string          `json:"code"`
}

// message is a message of a MESSAGES_SNAPSHOT. Content is a string or a list of parts; a call's arguments are a string of JSON.
type message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	Error      json.RawMessage `json:"error"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`
}

// outcome says how a run finished. Older versions of the protocol have no outcome, or a string instead of this object, and the run is then
// complete.
type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts"`
}

// interrupt is a question that a run stopped for.
type interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ToolCallID     string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}
