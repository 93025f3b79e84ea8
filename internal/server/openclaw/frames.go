// The frames of the protocol.

package openclaw

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// request is a frame of the client.
type request struct {
	// Which kind of frame or block it is.
	Type string `json:"type"`
	// Identifies it to clients.
	ID string `json:"id"`
	// What to do.
	Method string `json:"method"`
	// Depends on the method.
	Params json.RawMessage `json:"params"`
}

// response answers a request.
type response struct {
	// Which kind of frame or block it is.
	Type string `json:"type"`
	// Identifies it to clients.
	ID string `json:"id"`
	// The request succeeded.
	OK bool `json:"ok"`
	// Depends on the method or the event.
	Payload any `json:"payload,omitempty"`
	// Why it failed.
	Error *fault `json:"error,omitempty"`
}

// notice is an event.
type notice struct {
	// Which kind of frame or block it is.
	Type string `json:"type"`
	// What has happened.
	Event string `json:"event"`
	// Depends on the method or the event.
	Payload any `json:"payload"`
	// Of the connection.
	Seq int64 `json:"seq,omitempty"`
}

// fault is an error of the protocol.
type fault struct {
	// For programs.
	Code string `json:"code"`
	// The whole text so far, so that a client may have missed earlier events.
	Message string `json:"message"`
	// Further facts for programs.
	Details map[string]any `json:"details,omitempty"`
	// The same request may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// When to retry; 0 makes no statement.
	RetryAfterMS int64 `json:"retryAfterMs,omitempty"`
}

// Codes of errors.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeUnavailable = "UNAVAILABLE"
)

// chatEvent is the payload of a chat event.
type chatEvent struct {
	// The run that the frame is about.
	RunID string `json:"runId"`
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// Of the run.
	Seq int64 `json:"seq"`
	// One of delta, final, aborted and error.
	State string `json:"state"`
	// The text after what the client has, or all of it if Replace is set.
	DeltaText *string `json:"deltaText,omitempty"`
	// The client drops the text that it has.
	Replace bool `json:"replace,omitempty"`
	// The whole text so far, so that a client may have missed earlier events.
	Message *message `json:"message,omitempty"`
	// Why the answer ended, such as stop, length, rpc or error.
	StopReason string `json:"stopReason,omitempty"`
	// For the person, if the answer failed.
	ErrorMessage string `json:"errorMessage,omitempty"`
	// For programs: rate_limit, timeout, context_length or unknown.
	ErrorKind string `json:"errorKind,omitempty"`
	// What the answer has cost; nil if the agent did not report it.
	Usage *usage `json:"usage,omitempty"`
}

// agentEvent is the payload of an agent event.
type agentEvent struct {
	// The run that the frame is about.
	RunID string `json:"runId"`
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The id of the conversation.
	SessionID string `json:"sessionId"`
	// Which kind of data it has: assistant, thinking, tool or lifecycle.
	Stream string `json:"stream"`
	// Depends on the stream.
	Data any `json:"data"`
	// Of the run.
	Seq int64 `json:"seq"`
	// Epoch milliseconds.
	TS int64 `json:"ts"`
}

// textData is the content of an agent event for text or reasoning. Text is the whole text so far.
type textData struct {
	// The content of a block or an item.
	Text string `json:"text"`
	// What follows the text that the client has.
	Delta string `json:"delta"`
	// Names the part of the answer that the text belongs to.
	ItemID string `json:"itemId,omitempty"`
	// The client drops the text that it has.
	Replace bool `json:"replace,omitempty"`
}

// toolData is the content of an agent event for a tool.
type toolData struct {
	// How far it is, such as start, update, result, end or error.
	Phase string `json:"phase"`
	// For people.
	Name string `json:"name"`
	// Connects a call with its result.
	ToolCallID string `json:"toolCallId"`
	// The input, at the start.
	Args json.RawMessage `json:"args,omitempty"`
	// The output so far, in an update.
	Partial *toolResult `json:"partialResult,omitempty"`
	// The output, at the end.
	Result *toolResult `json:"result,omitempty"`
	// The call failed or was denied.
	IsError *bool `json:"isError,omitempty"`
}

// toolResult is the output of a tool.
type toolResult struct {
	// The blocks in their order.
	Content []block `json:"content"`
}

// lifecycle is the content of an agent event at the start and at the end of a run.
type lifecycle struct {
	// How far it is, such as start, update, result, end or error.
	Phase string `json:"phase"`
	// Epoch milliseconds; 0 if it has not started.
	StartedAt int64 `json:"startedAt,omitempty"`
	// Epoch milliseconds.
	EndedAt int64 `json:"endedAt,omitempty"`
	// Set to cancelled if a person stopped it.
	Status string `json:"status,omitempty"`
	// A person stopped it.
	Aborted bool `json:"aborted,omitempty"`
	// Why it failed.
	Error string `json:"error,omitempty"`
}

// message is a row of a history, and the answer in a chat event.
type message struct {
	// One of user, assistant and toolResult.
	Role string `json:"role"`
	// The blocks in their order.
	Content []block `json:"content"`
	// Epoch milliseconds.
	Timestamp int64 `json:"timestamp"`
	// The key of the request that sent it.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Connects a call with its result.
	ToolCallID string `json:"toolCallId,omitempty"`
	// The name of the tool, of a result or a request.
	ToolName string `json:"toolName,omitempty"`
	// The call failed or was denied.
	IsError *bool `json:"isError,omitempty"`
	// Why the answer ended, such as stop, length, rpc or error.
	StopReason string `json:"stopReason,omitempty"`
	// For the person, if the answer failed.
	ErrorMessage string `json:"errorMessage,omitempty"`
	// The model that the agent reports, or the name of the agent.
	Model string `json:"model,omitempty"`
	// What the answer has cost; nil if the agent did not report it.
	Usage *usage `json:"usage,omitempty"`
	// Set if a person stopped the answer.
	Abort *abort `json:"openclawAbort,omitempty"`
	// What identifies the row.
	Meta *rowMeta `json:"__openclaw,omitempty"`
}

// rowMeta identifies a row.
type rowMeta struct {
	// Identifies it to clients.
	ID  string `json:"id"`
	Seq int64  `json:"seq,omitempty"`
	// The run that the frame is about.
	RunID string `json:"runId,omitempty"`
	// The text is only the beginning.
	Truncated bool `json:"truncated,omitempty"`
	// Why it is so.
	Reason string `json:"reason,omitempty"`
}

// abort marks the row of an answer that was stopped.
type abort struct {
	// A person stopped it.
	Aborted bool `json:"aborted"`
	// Who stopped it; always rpc here.
	Origin string `json:"origin"`
	// The run that the frame is about.
	RunID string `json:"runId"`
}

// block is a piece of a message. Type determines which other fields are used.
type block struct {
	// Which kind of frame or block it is.
	Type string `json:"type"`
	// The content of a block or an item.
	Text *string `json:"text,omitempty"`
	// The content of a block of reasoning.
	Thinking *string `json:"thinking,omitempty"`
	// Identifies it to clients.
	ID string `json:"id,omitempty"`
	// For people.
	Name string `json:"name,omitempty"`
	// The input of a call.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// The address of the file.
	URL string `json:"url,omitempty"`
	// The type of the file.
	MIMEType string `json:"mimeType,omitempty"`
	// What a picture shows.
	Alt string `json:"alt,omitempty"`
	// 0 if it is unknown.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// The name that the user gave the file.
	FileName string `json:"fileName,omitempty"`
}

// usage is what an answer has cost, in tokens.
type usage struct {
	// Tokens that the model read.
	Input int64 `json:"input"`
	// Tokens that the model wrote.
	Output int64 `json:"output"`
	// Tokens that came from a cache.
	CacheRead int64 `json:"cacheRead"`
	// Tokens that went into a cache.
	CacheWrite int64 `json:"cacheWrite"`
	// The sum of the others.
	Total int64 `json:"totalTokens"`
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
