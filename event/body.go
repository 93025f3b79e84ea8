package event

import "encoding/json"

// Body holds what only some types of events carry. Beside each group stand the types that use it.
type Body struct {
	// MessageAdd, MessageStart.
	Role   Role    `json:"role,omitempty"`
	Author *Author `json:"author,omitempty"`
	// Source is where a message came from, such as "native", "eliza" or "inject". TurnStart: where a turn came from that its
	// upstream began by itself; other turns have none.
	Source string `json:"source,omitempty"`
	Parts  []Part `json:"parts,omitempty"` // MessageAdd

	// MessageUpdate: one of the Message* states. PartUpdate: one of the Part* states.
	State string `json:"state,omitempty"`

	// TurnQueue, TurnStart.
	Agent   string `json:"agent,omitempty"`
	Answers string `json:"answers,omitempty"` // id of the message that the turn answers
	Parent  string `json:"parent,omitempty"`  // id of the turn inside which this one runs

	// TurnUpdate.
	Phase    string    `json:"phase,omitempty"`
	Step     int       `json:"step,omitempty"`
	Upstream *Upstream `json:"upstream,omitempty"`
	Model    string    `json:"model,omitempty"`

	Request *Request `json:"request,omitempty"` // TurnWait
	Answer  *Answer  `json:"answer,omitempty"`  // TurnResume

	// TurnEnd.
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"` // TurnEnd, MessageEnd (stop reason), MessageUpdate (why it was rejected)
	By      string  `json:"by,omitempty"`     // TurnEnd: the subject that stopped the turn; never an agent's to say
	Error   *Error  `json:"error,omitempty"`  // TurnEnd, PartUpdate
	Usage   *Usage  `json:"usage,omitempty"`

	// PartStart. Record: what it is.
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`      // of a tool
	Call      string `json:"call,omitempty"`      // tool call id
	MediaType string `json:"mediaType,omitempty"` // of a text, such as text/markdown
	Join      string `json:"join,omitempty"`      // what stands between this part and the visible one before: JoinBlank or nothing

	// PartUpdate, ConversationUpdate.
	Title *string `json:"title,omitempty"`
	Media *Media  `json:"media,omitempty"` // PartStart too

	// PartEnd: the length and checksum of each field, by its name on the wire.
	Sums map[string]Sum `json:"sums,omitempty"`

	// ConversationUpdate: merged by top-level key; null removes one.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`

	// Record: the conversation that it tells of. Data is also the content of a part of kind data.
	Conversation string          `json:"conversation,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
}

// ReasonLength is the reason of a turn that completed at the model's limit of length. Each format has its own name for it, and
// dialects translate it, so that readers need to know only this one.
const ReasonLength = "length"

// Role says who speaks.
type Role string

// The roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
)

// Author names who wrote a message.
type Author struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// The kinds of parts.
const (
	KindText      = "text"
	KindReasoning = "reasoning"
	KindTool      = "tool"
	KindStatus    = "status"
	KindMedia     = "media"
	KindData      = "data"
)

// JoinBlank is the blank line between two visible parts that do not go on in the same text.
const JoinBlank = "\n\n"

// The states of a user's message.
const (
	MessageStarted  = "started"  // a turn answers it
	MessageQueued   = "queued"   // a turn will answer it
	MessageSteered  = "steered"  // it was handed to the running turn
	MessageJoined   = "joined"   // the running turn's answer covers it
	MessageRejected = "rejected" // nothing will answer it
)

// The states of a tool part.
const (
	PartRunning = "running"
	PartDone    = "done"
	PartFailed  = "failed"
	PartDenied  = "denied"
)

// Outcome says how a turn ended.
type Outcome string

// The outcomes of turns.
const (
	Completed   Outcome = "completed"
	Failed      Outcome = "failed"
	Cancelled   Outcome = "cancelled"
	Interrupted Outcome = "interrupted"
)

// Part is a part of a message that is added whole.
type Part struct {
	ID    string          `json:"id,omitempty"`
	Kind  string          `json:"kind"`
	Text  string          `json:"text,omitempty"`
	Media *Media          `json:"media,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	// History is the status trail of an imported part.
	History []string `json:"history,omitempty"`
}

// Media points at bytes outside the log.
type Media struct {
	URL  string `json:"url,omitempty"`
	MIME string `json:"mime,omitempty"`
	Name string `json:"name,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes; 0 is unknown
	Alt  string `json:"alt,omitempty"`
}

// Upstream is where a turn stands in its agent's own stream.
type Upstream struct {
	Run    string `json:"run,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Request is a question that a turn waits on.
type Request struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"` // RequestApproval or RequestInput
	Tool    string          `json:"tool,omitempty"`
	Part    string          `json:"part,omitempty"` // the tool part that it is about
	Prompt  string          `json:"prompt,omitempty"`
	Options []string        `json:"options,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// The kinds of requests.
const (
	RequestApproval = "approval"
	RequestInput    = "input"
)

// Answer closes a request. The first one wins.
type Answer struct {
	ID       string `json:"id"`                 // of the request
	Decision string `json:"decision,omitempty"` // Approve, Deny, or one of the request's options
	Text     string `json:"text,omitempty"`
	By       string `json:"by,omitempty"` // subject
}

// The decisions of an approval.
const (
	Approve = "approve"
	Deny    = "deny"
)

// Error is a failure as a reader may see it.
type Error struct {
	Code      string `json:"code,omitempty"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable,omitempty"`
}

// Usage is a turn's total, never a sum of snapshots. Counts are tokens; Cost is in the currency of the price list.
type Usage struct {
	Model      string  `json:"model,omitempty"`
	Input      int64   `json:"input,omitempty"`
	Output     int64   `json:"output,omitempty"`
	CacheRead  int64   `json:"cache_read,omitempty"`
	CacheWrite int64   `json:"cache_write,omitempty"`
	Reasoning  int64   `json:"reasoning,omitempty"`
	Cost       float64 `json:"cost,omitempty"`
}

// Sum is the length in bytes and the CRC-32C (Castagnoli) of a final text.
type Sum struct {
	Length int64  `json:"length"`
	CRC    uint32 `json:"crc"`
}
