// The frames of the protocol, and the payloads of the events of a run.

package openclaw

import "encoding/json"

// request is a frame of the client.
type request struct {
	Type   string          `json:"type"` // always req
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// response answers a request.
type response struct {
	Type    string `json:"type"` // always res
	ID      string `json:"id"`
	OK      bool   `json:"ok"`
	Payload any    `json:"payload,omitempty"`
	Error   *fault `json:"error,omitempty"`
}

// notice is an event.
type notice struct {
	Type    string `json:"type"` // always event
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	// Seq counts the events of the connection from 1. A client that finds a gap reconnects.
	Seq int64 `json:"seq,omitempty"`
}

// fault is an error of the protocol.
type fault struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
	// Retryable means that the same request may succeed later, after RetryAfterMS.
	Retryable    bool  `json:"retryable,omitempty"`
	RetryAfterMS int64 `json:"retryAfterMs,omitempty"`
}

// Codes of errors.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeUnavailable = "UNAVAILABLE"
)

// chatEvent is the payload of a chat event. Each one has the whole text so far, so a client may miss earlier ones.
type chatEvent struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	// Seq ascends within the run. Clients drop events whose number isn't above the last one.
	Seq   int64  `json:"seq"`
	State string `json:"state"` // delta, final, aborted or error
	// DeltaText follows the text that the client has. If Replace is set, it is all of the text.
	DeltaText    *string  `json:"deltaText,omitempty"`
	Replace      bool     `json:"replace,omitempty"`
	Message      *message `json:"message,omitempty"`
	StopReason   string   `json:"stopReason,omitempty"` // stop, length, rpc or error
	ErrorMessage string   `json:"errorMessage,omitempty"`
	ErrorKind    string   `json:"errorKind,omitempty"` // rate_limit, timeout, context_length or unknown
	Usage        *usage   `json:"usage,omitempty"`
}

// agentEvent is the payload of an agent event.
type agentEvent struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	SessionID  string `json:"sessionId"`
	// Stream determines the type of Data: textData for assistant and thinking, toolData for tool, lifecycle for lifecycle.
	Stream string `json:"stream"`
	Data   any    `json:"data"`
	// Seq is from the same sequence as those of the run's chat events.
	Seq int64 `json:"seq"`
	TS  int64 `json:"ts"` // epoch milliseconds
}

// textData is the content of an agent event for text or reasoning.
type textData struct {
	// Text is the whole text of the item so far. Delta follows what the client has, or is all of it if Replace is set.
	Text    string `json:"text"`
	Delta   string `json:"delta"`
	ItemID  string `json:"itemId,omitempty"`
	Replace bool   `json:"replace,omitempty"`
}

// toolData is the content of an agent event for a tool. Its phase is start, which has the arguments, update or result.
type toolData struct {
	Phase      string          `json:"phase"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"toolCallId"`
	Args       json.RawMessage `json:"args,omitempty"`
	// Partial is the whole output so far, and not what follows.
	Partial *toolResult `json:"partialResult,omitempty"`
	Result  *toolResult `json:"result,omitempty"`
	IsError *bool       `json:"isError,omitempty"`
}

// toolResult is the output of a tool.
type toolResult struct {
	Content []block `json:"content"`
}

// lifecycle is the content of an agent event at the start of a run and at its end. Its phase is start, end or error. Times are in epoch
// milliseconds.
type lifecycle struct {
	Phase     string `json:"phase"`
	StartedAt int64  `json:"startedAt,omitempty"`
	EndedAt   int64  `json:"endedAt,omitempty"`
	Status    string `json:"status,omitempty"` // cancelled, or empty
	Aborted   bool   `json:"aborted,omitempty"`
	Error     string `json:"error,omitempty"`
}
