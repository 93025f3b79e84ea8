// Messages: the rows of a history, and the answer in a chat event.

package openclaw

import (
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// message is a row of a history, and the answer in a chat event.
type message struct {
	Role      string  `json:"role"` // user, assistant or toolResult
	Content   []block `json:"content"`
	Timestamp int64   `json:"timestamp"` // epoch milliseconds
	// IdempotencyKey is "RUN:user" in a row of the user. The client finds its own message by it.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`

	// The result of a tool.
	ToolCallID string `json:"toolCallId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	IsError    *bool  `json:"isError,omitempty"`

	// The last row of an answer.
	StopReason   string `json:"stopReason,omitempty"` // stop, aborted or error
	ErrorMessage string `json:"errorMessage,omitempty"`
	Model        string `json:"model,omitempty"`
	Usage        *usage `json:"usage,omitempty"`
	Abort        *abort `json:"openclawAbort,omitempty"`

	Meta *rowMeta `json:"__openclaw,omitempty"`
}

// rowMeta identifies a row.
type rowMeta struct {
	ID string `json:"id"`
	// Seq ascends over the rows of a session. It has gaps.
	Seq   int64  `json:"seq,omitempty"`
	RunID string `json:"runId,omitempty"`
	// Truncated means that the row has only the beginning of its text, and Reason why.
	Truncated bool   `json:"truncated,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// abort marks the row of an answer that was stopped.
type abort struct {
	Aborted bool   `json:"aborted"`
	Origin  string `json:"origin"` // always rpc: OpenClaw has other reasons to stop a run, Leat doesn't
	RunID   string `json:"runId"`
}

// block is a piece of a message. Its type determines which other fields are set.
type block struct {
	Type string  `json:"type"`
	Text *string `json:"text,omitempty"` // text

	Thinking *string `json:"thinking,omitempty"` // thinking

	// toolCall
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`

	// image and attachment
	URL       string `json:"url,omitempty"`
	MIMEType  string `json:"mimeType,omitempty"`
	Alt       string `json:"alt,omitempty"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	FileName  string `json:"fileName,omitempty"`
}

// usage is what an answer has cost, in tokens.
type usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"totalTokens"`
}

// usageOf converts the usage of a turn, which is nil if the agent didn't report it.
func usageOf(u *event.Usage) *usage {
	if u == nil {
		return nil
	}
	return &usage{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Input + u.Output + u.CacheRead + u.CacheWrite}
}

// textBlock returns a block of text.
func textBlock(text string) block { return block{Type: "text", Text: &text} }
