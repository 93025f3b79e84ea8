package transcript

import (
	"encoding/json"
	"hash/crc32"
	"strings"

	"github.com/leat-dev/leat/event"
)

// Transcript is the state of a conversation: the result of folding its log, or a window of it. The zero value is empty and ready to use.
type Transcript struct {
	Title    string
	Metadata map[string]json.RawMessage
	Messages []*Message // in order of their start
	Turns    []*Turn    // in order of their first event

	// Seq is the seq of the last event applied; after [Transcript.Reset] that of the snapshot.
	Seq int64
	// Earlier is true if the conversation has messages before the first one here.
	Earlier bool
	// Truncated is the seq of the last truncate. A reader whose cursor is before it needs a snapshot.
	Truncated int64
	// LateEvents is the number of events that arrived after the end of their turn and were dropped.
	LateEvents int64

	floor    int64 // seq of the snapshot that this was reset to; events up to it are ignored
	updated  int64 // seq of the last change of Title and Metadata
	messages map[string]*Message
	turns    map[string]*Turn
	pending  *partialOp // nil if no operation is incomplete
}

// Message is a message of one author.
type Message struct {
	ID     string        `json:"id"`
	Turn   string        `json:"turn"` // the turn that wrote it; empty for messages outside turns
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

	// Seq is the seq of the message's first event, or 0 if the message came with a snapshot or a page.
	Seq int64 `json:"-"`

	floor   int64 // seq of the page that the message came with; events up to it are ignored
	updated int64 // seq of the last change of State
	closed  int64 // seq of the end
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

	texts     [4]text // by index of Fields
	notes     []note
	notedAt   int64 // seq of the last operation with a note
	rewritten int64 // seq of the last operation that changed or dropped notes; the notes as of an earlier seq are unknown
	updated   int64 // seq of the last update
	closed    int64 // seq of the end, of the part or of its turn
}

// text is one field. Its bytes are never overwritten, so a copy of s is a copy of the text.
type text struct {
	s   string
	w   *strings.Builder // contains s, so that n appends don't copy the text n times; nil before the first append and in copies
	seq int64            // of the last operation
}

// append adds to the end of the text.
func (f *text) append(s string) {
	if f.w == nil {
		f.w = &strings.Builder{}
		f.w.WriteString(f.s)
	}
	f.w.WriteString(s)
	f.s = f.w.String()
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
	// Source is set for a turn that the upstream started by itself, for example for another client, and names where it came from. Such a turn
	// is never queued, blocks no other turn, and may outlive its parent.
	Source    string          `json:"source,omitempty"`
	State     TurnState       `json:"state"`
	Outcome   event.Outcome   `json:"outcome,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	StoppedBy string          `json:"by,omitempty"` // the subject that stopped it, if one did
	Error     *event.Error    `json:"error,omitempty"`
	Usage     *event.Usage    `json:"usage,omitempty"`
	Phase     string          `json:"phase,omitempty"`
	Step      int             `json:"step,omitempty"`
	Model     string          `json:"model,omitempty"`
	Upstream  *event.Upstream `json:"upstream,omitempty"`
	Requests  []*Request      `json:"requests,omitempty"` // open ones
	// Answered are the requests that were open when an answer came, in the order of the answers: the newest [MaxAnswered] ones. The end of
	// the turn keeps them. Entries are never overwritten in place, so a copy of the slice is a copy of the list.
	Answered []AnsweredRequest `json:"answered,omitempty"`

	QueuedAt  int64 `json:"queuedAt,omitempty"` // epoch milliseconds
	StartedAt int64 `json:"startedAt,omitempty"`
	EndedAt   int64 `json:"endedAt,omitempty"`
	// FirstSeq and EndSeq are the seqs of its first event and of its end.
	FirstSeq int64 `json:"firstSeq,omitempty"`
	EndSeq   int64 `json:"endSeq,omitempty"`

	hasStart   bool             // its first event was applied: FirstSeq is the seq of its start
	updated    int64            // seq of the last start or update
	answeredAt map[string]int64 // seq of the answer, by the id of the request
}

// Request is an open question of a turn.
type Request struct {
	event.Request
	At  int64 `json:"at,omitempty"` // epoch milliseconds
	seq int64
}

// AnsweredRequest is a question of a turn with its answer. The details and options of the question are left out, because every snapshot
// contains all answered questions of its turns. The prompt and the text are cut for the same reason: a text may be the result of a tool.
type AnsweredRequest struct {
	ID       string            `json:"id"`
	Kind     event.RequestKind `json:"kind"`
	Tool     string            `json:"tool,omitempty"`
	Part     string            `json:"part,omitempty"`
	Prompt   string            `json:"prompt,omitempty"` // the first MaxAnsweredText characters
	Decision event.Decision    `json:"decision,omitempty"`
	Text     string            `json:"text,omitempty"` // the first MaxAnsweredText characters
	Subject  string            `json:"by,omitempty"`   // of the user who answered
	At       int64             `json:"at,omitempty"`   // of the answer, epoch milliseconds
}

// The limits of a turn's answered requests. A character is a Unicode code point.
const (
	MaxAnswered     = 100
	MaxAnsweredText = 1000
)

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

// Independent reports whether the turn doesn't end with another one: it has no parent, or it may outlive its parent.
func (t *Turn) Independent() bool { return t.Parent == "" || t.Source != "" }

// Unfinished reports whether the turn has not ended.
func (t *Turn) Unfinished() bool { return t.State != TurnEnded }

// Text returns the content of a field, without a copy.
func (p *Part) Text(f event.Field) string { return p.texts[index(f)].s }

// Len returns the length of a field in bytes.
func (p *Part) Len(f event.Field) int { return len(p.texts[index(f)].s) }

// Sum returns the length and checksum of a field, for comparison with those in the part's end. It reads the whole text.
func (p *Part) Sum(f event.Field) event.Sum {
	s := p.texts[index(f)].s
	sum := event.Sum{Length: int64(len(s))}
	for b := make([]byte, min(len(s), 4<<10)); s != ""; {
		n := copy(b, s)
		sum.CRC, s = crc32.Update(sum.CRC, castagnoli, b[:n]), s[n:]
	}
	return sum
}

// Size estimates the length of the message in a snapshot, in bytes. It counts texts exactly and everything else roughly.
func (m *Message) Size() int {
	n := 200
	for _, p := range m.Parts {
		n += 100 + len(p.Data)
		for i := range p.texts {
			n += len(p.texts[i].s)
		}
		for _, h := range p.notes {
			n += len(h.text)
		}
	}
	return n
}

// Fields are all fields of a part, in the order of their indexes.
var Fields = [4]event.Field{event.Text, event.Input, event.Output, event.Stderr}

// index returns the position of a field in [Fields]. An unknown field counts as the text; Validate refuses it in events from outside.
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
