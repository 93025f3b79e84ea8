// The frames of the protocol.

package openclaw

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// request is a frame of the client.
type request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// response answers a request.
type response struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	OK      bool   `json:"ok"`
	Payload any    `json:"payload,omitempty"`
	Error   *fault `json:"error,omitempty"`
}

// notice is an event.
type notice struct {
	Type    string `json:"type"`
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	// Of the connection.
	Seq int64 `json:"seq,omitempty"`
}

// fault is an error of the protocol.
type fault struct {
	Code         string         `json:"code"`
	Message      string         `json:"message"`
	Details      map[string]any `json:"details,omitempty"`
	Retryable    bool           `json:"retryable,omitempty"`
	RetryAfterMS int64          `json:"retryAfterMs,omitempty"`
}

// Codes of errors.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeUnavailable = "UNAVAILABLE"
)

// chatEvent is the payload of a chat event.
type chatEvent struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	// Of the run.
	Seq          int64    `json:"seq"`
	State        string   `json:"state"`
	DeltaText    *string  `json:"deltaText,omitempty"`
	Replace      bool     `json:"replace,omitempty"`
	Message      *message `json:"message,omitempty"`
	StopReason   string   `json:"stopReason,omitempty"`
	ErrorMessage string   `json:"errorMessage,omitempty"`
	ErrorKind    string   `json:"errorKind,omitempty"`
	Usage        *usage   `json:"usage,omitempty"`
}

// agentEvent is the payload of an agent event.
type agentEvent struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	SessionID  string `json:"sessionId"`
	Stream     string `json:"stream"`
	Data       any    `json:"data"`
	// Of the run.
	Seq int64 `json:"seq"`
	TS  int64 `json:"ts"`
}

// textData is the content of an agent event for text or reasoning. Text is the whole text so far.
type textData struct {
	Text    string `json:"text"`
	Delta   string `json:"delta"`
	ItemID  string `json:"itemId,omitempty"`
	Replace bool   `json:"replace,omitempty"`
}

// toolData is the content of an agent event for a tool.
type toolData struct {
	Phase      string          `json:"phase"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"toolCallId"`
	Args       json.RawMessage `json:"args,omitempty"`
	Partial    *toolResult     `json:"partialResult,omitempty"`
	Result     *toolResult     `json:"result,omitempty"`
	IsError    *bool           `json:"isError,omitempty"`
}

// toolResult is the output of a tool.
type toolResult struct {
	Content []block `json:"content"`
}

// lifecycle is the content of an agent event at the start and at the end of a run.
type lifecycle struct {
	Phase     string `json:"phase"`
	StartedAt int64  `json:"startedAt,omitempty"`
	EndedAt   int64  `json:"endedAt,omitempty"`
	Status    string `json:"status,omitempty"`
	Aborted   bool   `json:"aborted,omitempty"`
	Error     string `json:"error,omitempty"`
}

// message is a row of a history, and the answer in a chat event.
type message struct {
	Role           string   `json:"role"`
	Content        []block  `json:"content"`
	Timestamp      int64    `json:"timestamp"`
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
	ToolCallID     string   `json:"toolCallId,omitempty"`
	ToolName       string   `json:"toolName,omitempty"`
	IsError        *bool    `json:"isError,omitempty"`
	StopReason     string   `json:"stopReason,omitempty"`
	ErrorMessage   string   `json:"errorMessage,omitempty"`
	Model          string   `json:"model,omitempty"`
	Usage          *usage   `json:"usage,omitempty"`
	Abort          *abort   `json:"openclawAbort,omitempty"`
	Meta           *rowMeta `json:"__openclaw,omitempty"`
}

// rowMeta identifies a row.
type rowMeta struct {
	ID        string `json:"id"`
	Seq       int64  `json:"seq,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// abort marks the row of an answer that was stopped.
type abort struct {
	Aborted bool   `json:"aborted"`
	Origin  string `json:"origin"`
	RunID   string `json:"runId"`
}

// block is a piece of a message. Type determines which other fields are used.
type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	URL       string          `json:"url,omitempty"`
	MIMEType  string          `json:"mimeType,omitempty"`
	Alt       string          `json:"alt,omitempty"`
	SizeBytes int64           `json:"sizeBytes,omitempty"`
	FileName  string          `json:"fileName,omitempty"`
}

// usage is what an answer has cost, in tokens.
type usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"totalTokens"`
}

// usageOf converts the usage of a turn.
func usageOf(u *event.Usage) *usage {
	if u == nil {
		return nil
	}
	return &usage{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Input + u.Output + u.CacheRead + u.CacheWrite}
}

// textBlock returns a block of text.
func textBlock(text string) block { return block{Type: "text", Text: &text} }
