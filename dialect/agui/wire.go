package agui

import "encoding/json"

// frame is any event. Texts stay raw: a character may be split over two of them.
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

// message is one of a snapshot.
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

// outcome is how a run finished; older versions have none, or a word.
type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts"`
}

type interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ToolCallID     string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}
