// The messages of the protocol: https://agentclientprotocol.com/protocol/v1/schema.

package acp

import "encoding/json"

// version is the protocol version. Version 2 is a draft.
const version = 1

// Error codes of the protocol in addition to those of JSON-RPC.
const (
	authRequired = -32000 // the gateway refuses the token
	notFound     = -32002 // no such session
)

// Kinds of session/update.
const (
	userChunk    = "user_message_chunk"
	agentChunk   = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
	toolCall     = "tool_call"
	toolUpdate   = "tool_call_update"
	planUpdate   = "plan"
	infoUpdate   = "session_info_update"
)

// chunk is a piece of a message. The chunks with one MessageID are one message; older editors only see that the kind changes.
type chunk struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId,omitempty"`
	Content   block  `json:"content"`
}

// plan is what the agent is going to do. Each one replaces the one before it.
type plan struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []planEntry `json:"entries"`
}

// info is what has changed of a session's description.
type info struct {
	Kind  string `json:"sessionUpdate"`
	Title string `json:"title"`
}

// block is a content block. Type decides which other fields are set: "text" has Text, "image" and "audio" have Data (base64) and MIME,
// "resource_link" has URI, Name and MIME, and "resource" has Resource.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MIME     string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Size     int64     `json:"size,omitempty"` // bytes
	Resource *resource `json:"resource,omitempty"`
}

// resource is a file that the editor has put into a prompt: as Text, or as Blob in base64.
type resource struct {
	URI  string `json:"uri"`
	MIME string `json:"mimeType"`
	Text string `json:"text"`
	Blob string `json:"blob"`
}

// tool is a tool call, or what has changed of one. The content replaces the earlier one as a whole.
type tool struct {
	Kind     string          `json:"sessionUpdate,omitempty"` // empty in a request for permission
	ID       string          `json:"toolCallId"`
	Title    string          `json:"title,omitempty"`
	Name     string          `json:"name,omitempty"`
	ToolKind string          `json:"kind,omitempty"`
	Status   string          `json:"status,omitempty"` // pending, in_progress, completed or failed
	Content  []toolContent   `json:"content,omitempty"`
	RawInput json.RawMessage `json:"rawInput,omitempty"`
}

// toolContent is content that a tool has produced. Its type is always "content".
type toolContent struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
}

// planEntry is a line of a plan.
type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium or low
	Status   string `json:"status"`   // pending, in_progress or completed
}

// sessionParams are the params of the methods about one session. They are one type because the methods share most keys, and none has a key with
// another meaning. The working folder is that of the editor's project.
type sessionParams struct {
	ID     string  `json:"sessionId"`
	Dir    string  `json:"cwd"`
	Prompt []block `json:"prompt"` // session/prompt
	Mode   string  `json:"modeId"` // session/set_mode
	Option string  `json:"configId"`
	Value  any     `json:"value"` // session/set_config_option: the id of a choice
	Tools  []any   `json:"mcpServers"`
}

// sessionResult is the result of the methods that open a session. ID is set by session/new only.
type sessionResult struct {
	ID      string         `json:"sessionId,omitempty"`
	Modes   *modes         `json:"modes,omitempty"`
	Options []configOption `json:"configOptions,omitempty"`
}

// promptResult is the result of session/prompt. It says why the turn has ended, and has no text: all of that was sent in updates before.
type promptResult struct {
	StopReason string `json:"stopReason"` // end_turn, max_tokens or cancelled
}

// permissionOption is a choice of a session/request_permission.
type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once or reject_always
}

// sessionInfo is an entry of session/list.
type sessionInfo struct {
	ID      string `json:"sessionId"`
	Dir     string `json:"cwd"`
	Title   string `json:"title,omitempty"`
	Updated string `json:"updatedAt,omitempty"` // RFC 3339
}
