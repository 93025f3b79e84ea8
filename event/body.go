package event

import "encoding/json"

// Body has the fields that only some types of events use. The comment of each group names the types.
type Body struct {
	// MessageAdd, MessageStart.
	Role   Role    `json:"role,omitempty"`
	Author *Author `json:"author,omitempty"`
	// Source is where a message came from, such as "native", "eliza" or "inject". In TurnStart it is set only for a
	// turn that the upstream started without a message from Leat.
	Source string `json:"source,omitempty"`
	Parts  []Part `json:"parts,omitempty"` // MessageAdd

	// State is the state of a tool, in PartUpdate. MessageState is the state of a user's message, in MessageUpdate. Both are written
	// under the key "state", so an event has at most one of them.
	State        PartState    `json:"state,omitempty"`
	MessageState MessageState `json:"-"`

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
	Outcome   Outcome `json:"outcome,omitempty"`
	Reason    string  `json:"reason,omitempty"` // TurnEnd, MessageEnd (stop reason), MessageUpdate (why it was rejected)
	StoppedBy string  `json:"by,omitempty"`     // TurnEnd: the subject that stopped the turn; agents can't set it
	Error     *Error  `json:"error,omitempty"`  // TurnEnd, PartUpdate
	Usage     *Usage  `json:"usage,omitempty"`

	// Kind is the kind of a part, in PartStart. RecordKind is the kind of an entry, in Record. Both are written under the key "kind".
	Kind       PartKind `json:"kind,omitempty"`
	RecordKind string   `json:"-"`

	// PartStart.
	Name      string `json:"name,omitempty"`      // the tool's name
	Call      string `json:"call,omitempty"`      // the tool call's id
	MediaType string `json:"mediaType,omitempty"` // of a text, such as text/markdown
	Join      string `json:"join,omitempty"`      // the separator before this part if a visible part precedes it: JoinBlank or empty

	// PartUpdate, ConversationUpdate.
	Title *string `json:"title,omitempty"`
	Media *Media  `json:"media,omitempty"` // PartStart too

	// PartEnd: the length and checksum of each field, by its name on the wire.
	Sums map[string]Sum `json:"sums,omitempty"`

	// ConversationUpdate: merged by top-level key; null removes one.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`

	// Record: the conversation that the entry is about. Data is also the content of a part of kind data.
	Conversation string          `json:"conversation,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
}

// ReasonLength is the reason of a turn that completed at the model's limit of length. Each format has its own name for it, and
// dialects translate it, so that readers need to know only this one.
const ReasonLength = "length"

// Role is the role of a message's author.
type Role string

// The roles of messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
)

// Author identifies the author of a message, if the role isn't enough: one of several users, or an agent by its own name.
type Author struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// PartKind says what a part contains.
type PartKind string

// The kinds of parts.
const (
	KindText      PartKind = "text"
	KindReasoning PartKind = "reasoning"
	KindTool      PartKind = "tool"
	KindStatus    PartKind = "status"
	KindMedia     PartKind = "media"
	KindData      PartKind = "data"
)

// JoinBlank is the blank line between two visible parts that are separate paragraphs.
const JoinBlank = "\n\n"

// MessageState says how a user's message is being answered.
type MessageState string

// The states of a user's message.
const (
	MessageStarted  MessageState = "started"  // a turn is answering it
	MessageQueued   MessageState = "queued"   // a turn will answer it
	MessageSteered  MessageState = "steered"  // it was sent to the agent of the running turn
	MessageJoined   MessageState = "joined"   // the answer of the running turn covers it
	MessageRejected MessageState = "rejected" // no turn will answer it
)

// PartState says how far a tool call has progressed.
type PartState string

// The states of a tool part.
const (
	PartRunning PartState = "running"
	PartDone    PartState = "done"
	PartFailed  PartState = "failed"
	PartDenied  PartState = "denied" // a person refused the call, so the tool did not run
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
	Kind  PartKind        `json:"kind"`
	Text  string          `json:"text,omitempty"`
	Media *Media          `json:"media,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	// History is the list of notes of an imported status part, oldest first.
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

// Upstream is the position of a turn in its agent's own stream, from which an agent that can resume continues. Cursor is opaque to Leat.
type Upstream struct {
	Run    string `json:"run,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Request is a question that a turn waits on.
type Request struct {
	ID      string          `json:"id"`
	Kind    RequestKind     `json:"kind"`
	Tool    string          `json:"tool,omitempty"`
	Part    string          `json:"part,omitempty"` // the tool part that it is about
	Prompt  string          `json:"prompt,omitempty"`
	Options []string        `json:"options,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// RequestKind says what a turn needs from a person.
type RequestKind string

// The kinds of requests.
const (
	RequestApproval RequestKind = "approval" // permission to run a tool
	RequestInput    RequestKind = "input"    // a text or one of the options
)

// Answer closes a request. The first answer to a request counts; later ones have no effect.
type Answer struct {
	ID       string   `json:"id"`                 // of the request
	Decision Decision `json:"decision,omitempty"` // Approve, Deny, or one of the request's options
	Text     string   `json:"text,omitempty"`
	Subject  string   `json:"by,omitempty"` // of the user who answered
}

// Decision is the choice in an answer: Approve, Deny, or one of the options of the request.
type Decision string

// The decisions of an approval.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// Error is a failure as readers see it, so it must not contain secrets. Retryable is true if the same request may succeed later.
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
