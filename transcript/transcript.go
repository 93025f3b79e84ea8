package transcript

import (
	"encoding/json"
	"hash/crc32"

	"github.com/leat-dev/leat/event"
)

// Transcript is what a log, or a window of it, comes to. The zero value is an empty one, ready to use.
type Transcript struct {
	Title    string
	Metadata map[string]json.RawMessage
	Messages []*Message // in order of their start
	Turns    []*Turn    // in order of their first event

	// Seq is the seq of the last event applied; after [Transcript.Reset] that of the snapshot.
	Seq int64
	// Earlier says that the conversation has messages before the first one held here.
	Earlier bool
	// Truncated is the seq of the last truncate; a reader from before it needs a snapshot.
	Truncated int64
	// Late counts events that came after the end of their turn and were dropped.
	LateEvents int64

	floor    int64 // events up to here are in the snapshot that this began with
	updated  int64
	messages map[string]*Message
	turns    map[string]*Turn
	pending  *partialOp
}

// Message is what one author said.
type Message struct {
	ID     string        `json:"id"`
	Turn   string        `json:"turn"` // the turn that said it; empty for messages outside turns
	Role   event.Role    `json:"role"`
	Author *event.Author `json:"author"`
	Source string        `json:"source"`
	At     int64         `json:"at"` // epoch milliseconds
	EndAt  int64         `json:"endAt"`
	// State says how a user's message is being answered, StateTurn by which turn. StateReason says why a message was rejected.
	State       event.MessageState `json:"state"`
	StateTurn   string             `json:"stateTurn"`
	StateReason string             `json:"stateReason"`
	Final       bool               `json:"ended"`
	StopReason  string             `json:"stopReason"`
	Parts       []*Part            `json:"parts"`

	// Seq is that of the event that began it; 0 where it came with a snapshot or a page.
	Seq int64 `json:"-"`

	floor           int64 // as of this seq, for a message that came by page
	updated, closed int64 // seqs
}

// Part is one piece of a message. Its texts are read with [Part.Text].
type Part struct {
	ID        string          `json:"id"`
	Kind      event.PartKind  `json:"kind"`
	Name      string          `json:"name"`
	Call      string          `json:"call"`
	MediaType string          `json:"mediaType"`
	Join      string          `json:"join"`
	State     event.PartState `json:"state"`
	Title     string          `json:"title"`
	Media     *event.Media    `json:"media"`
	Error     *event.Error    `json:"error"`
	Data      json.RawMessage `json:"data"`
	At        int64           `json:"at"` // epoch milliseconds
	EndAt     int64           `json:"endAt"`
	Final     bool            `json:"ended"`

	texts           [4]text
	notes           []note
	notedAt         int64 // seq of the operation that changed the notes last
	rewritten       int64 // seq of the last operation that changed or dropped notes: what they were before is not known
	updated, closed int64
}

// text is one field. Bytes below len(b) are never written again, so that a copy of the slice is a copy of the text.
type text struct {
	b   []byte
	seq int64
}

// TurnState says how far a turn has progressed.
type TurnState string

// The states of a turn.
const (
	TurnQueued  TurnState = "queued"
	TurnRunning TurnState = "running"
	TurnWaiting TurnState = "waiting" // for a person's answer
	TurnEnded   TurnState = "ended"   // its Outcome says how
)

// Turn is one run of an agent.
type Turn struct {
	ID      string `json:"id"`
	Agent   string `json:"agent,omitempty"`
	Answers string `json:"answers,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Source is where a turn came from that its upstream began by itself, such as another client; other turns have none. Such a turn
	// does not wait in the queue and nothing waits for it, and it may outlive its parent.
	Source    string          `json:"source,omitempty"`
	State     TurnState       `json:"state"`
	Outcome   event.Outcome   `json:"outcome,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	StoppedBy string          `json:"by,omitempty"` // the subject that stopped it, where one did
	Error     *event.Error    `json:"error,omitempty"`
	Usage     *event.Usage    `json:"usage,omitempty"`
	Phase     string          `json:"phase,omitempty"`
	Step      int             `json:"step,omitempty"`
	Model     string          `json:"model,omitempty"`
	Upstream  *event.Upstream `json:"upstream,omitempty"`
	Requests  []*Request      `json:"requests,omitempty"` // open ones

	QueuedAt  int64 `json:"queuedAt,omitempty"` // epoch milliseconds
	StartedAt int64 `json:"startedAt,omitempty"`
	EndedAt   int64 `json:"endedAt,omitempty"`
	// FirstSeq and EndSeq are the seqs of its first event and of its end.
	FirstSeq int64 `json:"firstSeq,omitempty"`
	EndSeq   int64 `json:"endSeq,omitempty"`

	hasStart   bool // its first event was seen, and not trimmed away
	updated    int64
	answeredAt map[string]int64 // closed requests and the seq that closed them
}

// Request is an open question of a turn.
type Request struct {
	event.Request
	At  int64 `json:"at,omitempty"` // epoch milliseconds
	seq int64
}

// Message returns the message with that id, or nil.
func (t *Transcript) Message(id string) *Message { return t.messages[id] }

// Turn returns the turn with that id, or nil.
func (t *Transcript) Turn(id string) *Turn { return t.turns[id] }

// Part returns the part with that id, or nil.
func (m *Message) Part(id string) *Part {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].ID == id {
			return m.Parts[i]
		}
	}
	return nil
}

// Independent reports whether the turn ends by itself: it lies inside no other turn, or may outlive the one around it.
func (t *Turn) Independent() bool { return t.Parent == "" || t.Source != "" }

// Unfinished reports whether the turn is still owed an end.
func (t *Turn) Unfinished() bool { return t.State != TurnEnded }

// Text returns the content of a field.
func (p *Part) Text(f event.Field) string { return string(p.texts[index(f)].b) }

// Len returns the length of a field in bytes.
func (p *Part) Len(f event.Field) int { return len(p.texts[index(f)].b) }

// Sum returns the length and checksum of a field, as a part's end carries them.
func (p *Part) Sum(f event.Field) event.Sum {
	b := p.texts[index(f)].b
	return event.Sum{Length: int64(len(b)), CRC: crc32.Checksum(b, castagnoli)}
}

// Size estimates the bytes that the message takes in a snapshot.
func (m *Message) Size() int {
	n := 200
	for _, p := range m.Parts {
		n += 100 + len(p.Data)
		for i := range p.texts {
			n += len(p.texts[i].b)
		}
		for _, h := range p.notes {
			n += len(h.text)
		}
	}
	return n
}

// Fields are all fields of a part, in the order of their indexes.
var Fields = [4]event.Field{event.Text, event.Input, event.Output, event.Stderr}

func index(f event.Field) int {
	switch f {
	case event.Input:
		return 1
	case event.Output:
		return 2
	case event.Stderr:
		return 3
	}
	return 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
