package event

// Type names what an event does.
type Type string

// The types of events. The comments on the fields of [Event] and [Body] name the types that use them.
const (
	MessageAdd    Type = "message.add"    // a whole message at once: the user's, an injected, a proactive or an imported one
	MessageUpdate Type = "message.update" // the state of a user's message changed
	MessageStart  Type = "message.start"
	MessageEnd    Type = "message.end"

	TurnQueue  Type = "turn.queue"
	TurnStart  Type = "turn.start"
	TurnUpdate Type = "turn.update" // progress; never part of the answer's text
	TurnWait   Type = "turn.wait"   // the turn waits for a person's answer
	TurnResume Type = "turn.resume"
	TurnEnd    Type = "turn.end" // exactly one for each turn

	PartStart   Type = "part.start"
	PartAppend  Type = "part.append"
	PartReplace Type = "part.replace" // replaces the whole content; an empty text retracts it
	PartUpdate  Type = "part.update"  // merged key by key
	PartEnd     Type = "part.end"     // the content is final

	ConversationUpdate   Type = "conversation.update"
	ConversationTruncate Type = "conversation.truncate" // Message is the last message that remains; if it is empty, none remains
	ConversationDelete   Type = "conversation.delete"

	Record Type = "record" // an entry of a log other than a conversation's, such as the audit log; it is never compacted
)

// Field names one of a part's texts. The zero value is the text itself.
type Field string

// The fields of a part. All but [Text] belong to tools.
const (
	Text   Field = ""
	Input  Field = "input"
	Output Field = "output"
	Stderr Field = "stderr"
)

// Name returns the field's name on the wire, which for [Text] is "text".
func (f Field) Name() string {
	if f == Text {
		return "text"
	}
	return string(f)
}

// Event is one entry of a conversation's log, or one operation of a dialect.
type Event struct {
	// Seq numbers the entry from 1. A merged event carries the seq of its last.
	Seq int64
	// MergedFrom is the seq of the first event that was merged into this one, or 0 if none was.
	MergedFrom int64
	// At is the arrival in epoch milliseconds.
	At   int64
	Type Type

	Turn    string // id, a UUIDv7
	Message string // id, a UUIDv7; in an operation an upstream key
	Part    string // id, unique within its message; in an operation an upstream key

	Field  Field  // PartAppend, PartReplace: the text that changes
	Offset int64  // PartAppend: the position of Text in the field, in bytes of UTF-8
	Text   string // PartAppend, PartReplace
	// Note is the text of the callback that caused this operation on a status part, trimmed. It is empty if no callback did.
	Note string
	// Extend is true if Note extends the previous note and therefore replaces it.
	Extend bool
	// History is the part's complete list of notes up to this event. Merged and compacted operations carry it instead of Note.
	History []string
	// Partial is true if the next event continues the same operation, which was too long for one event. A reader applies the pieces
	// together when the last one has arrived.
	Partial bool

	// Body has the fields that only some types use. It is nil if all of them are empty.
	Body *Body
}

// Op reports whether e changes a part's text.
func (e *Event) Op() bool { return e.Type == PartAppend || e.Type == PartReplace }

// Get returns the body for reading. If e has no body, it returns an empty one, which must not be written to.
func (e *Event) Get() *Body {
	if e.Body == nil {
		return &emptyBody
	}
	return e.Body
}

var emptyBody Body // never written to

// FirstSeq returns the seq of the first event that this one stands for.
func (e *Event) FirstSeq() int64 {
	if e.MergedFrom != 0 {
		return e.MergedFrom
	}
	return e.Seq
}
