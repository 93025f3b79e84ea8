package event

// Type names what an event does.
type Type string

// The types of events. What each carries is said beside the fields of [Event] and [Body].
const (
	MessageAdd    Type = "message.add"    // a whole message at once: the user's, an injected, a proactive or an imported one
	MessageUpdate Type = "message.update" // what became of a user's message
	MessageStart  Type = "message.start"
	MessageEnd    Type = "message.end"

	TurnQueue  Type = "turn.queue"
	TurnStart  Type = "turn.start"
	TurnUpdate Type = "turn.update" // progress; never part of the answer's text
	TurnWait   Type = "turn.wait"   // the turn stands still for a person
	TurnResume Type = "turn.resume"
	TurnEnd    Type = "turn.end" // exactly one a turn

	PartStart   Type = "part.start"
	PartAppend  Type = "part.append"
	PartReplace Type = "part.replace" // the whole content anew; empty text retracts
	PartUpdate  Type = "part.update"  // merged key by key
	PartEnd     Type = "part.end"     // the content is final

	ConversationUpdate   Type = "conversation.update"
	ConversationTruncate Type = "conversation.truncate" // Message is the last one that stays; empty: nothing stays
	ConversationDelete   Type = "conversation.delete"

	Record Type = "record" // an entry of a log that is no transcript; never compacted
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
	// First is the seq of the first event that was merged into this one; 0 where nothing was merged.
	MergedFrom int64
	// At is the arrival in epoch milliseconds.
	At   int64
	Type Type

	Turn    string // id, a UUIDv7
	Message string // id, a UUIDv7; in an operation an upstream key
	Part    string // id, unique within its message; in an operation an upstream key

	Field  Field  // of which text PartAppend and PartReplace speak
	Offset int64  // PartAppend: where Text goes, in bytes of UTF-8
	Text   string // PartAppend, PartReplace
	// Note is the text of the callback that caused this operation on a status part, trimmed; empty where there is none.
	Note string
	// Extend says that Note takes the place of the last note, which it extends.
	Extend bool
	// History is the whole list of notes of the part up to here; merged and compacted operations carry it in place of Note.
	History []string
	// More says that the next event goes on with the same operation; a reader applies them as one when the last arrives.
	Partial bool

	// Body holds what only some types carry; nil where there is nothing.
	Body *Body
}

// Op reports whether e changes a part's text.
func (e *Event) Op() bool { return e.Type == PartAppend || e.Type == PartReplace }

// Get returns the body to read from; the zero Body where there is none.
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
