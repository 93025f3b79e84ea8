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
	// Truncated is the seq of the last truncate; a reader from before it needs a snapshot.
	Truncated int64
	// Late counts events that came after the end of their turn and were dropped.
	Late int64

	floor    int64 // events up to here are in the snapshot that this began with
	updated  int64
	messages map[string]*Message
	turns    map[string]*Turn
}

// Message is what one author said.
type Message struct {
	ID     string
	Turn   string // the turn that said it; empty for messages outside turns
	Role   event.Role
	Author *event.Author
	Source string
	At     int64 // epoch milliseconds
	EndAt  int64
	// State and StateTurn say what became of a user's message; StateReason why it was rejected.
	State, StateTurn, StateReason string
	Ended                         bool
	StopReason                    string
	Parts                         []*Part

	floor           int64 // as of this seq, for a message that came by page
	updated, closed int64 // seqs
}

// Part is one piece of a message.
type Part struct {
	ID        string
	Kind      string
	Name      string
	Call      string
	MediaType string
	Join      string
	State     string
	Title     string
	Media     *event.Media
	Error     *event.Error
	Data      json.RawMessage
	At, EndAt int64 // epoch milliseconds
	Ended     bool

	texts           [4]text
	notes           []note
	updated, closed int64
}

type text struct {
	b   []byte
	seq int64
}

type note struct {
	seq  int64
	text string
}

// The states of a turn beside its outcomes.
const (
	Queued  = "queued"
	Running = "running"
	Waiting = "waiting"
	Ended   = "ended"
)

// Turn is one run of an agent.
type Turn struct {
	ID       string
	Agent    string
	Answers  string
	Parent   string
	State    string // Queued, Running, Waiting or Ended
	Outcome  event.Outcome
	Reason   string
	Error    *event.Error
	Usage    *event.Usage
	Phase    string
	Step     int
	Model    string
	Upstream *event.Upstream
	Requests []*Request // open ones

	QueuedAt, StartedAt, EndedAt int64 // epoch milliseconds
	// FirstSeq and EndSeq are the seqs of its first event and of its end.
	FirstSeq, EndSeq int64

	updated  int64
	answered map[string]int64 // closed requests and the seq that closed them
}

// Request is an open question of a turn.
type Request struct {
	event.Request
	At  int64
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

// Unfinished reports whether the turn is still owed an end.
func (t *Turn) Unfinished() bool { return t.State != Ended }

// Text returns the content of a field.
func (p *Part) Text(f event.Field) string { return string(p.texts[index(f)].b) }

// Len returns the length of a field in bytes.
func (p *Part) Len(f event.Field) int { return len(p.texts[index(f)].b) }

// Sum returns the length and checksum of a field, as a part's end carries them.
func (p *Part) Sum(f event.Field) event.Sum {
	b := p.texts[index(f)].b
	return event.Sum{Length: int64(len(b)), CRC: crc32.Checksum(b, castagnoli)}
}

// History returns the part's notes, oldest first: blanks and adjacent equals are dropped.
func (p *Part) History() []string { return p.HistoryAt(1<<63 - 1) }

// HistoryAt returns the part's notes as of seq.
func (p *Part) HistoryAt(seq int64) []string {
	var h []string
	for _, n := range p.notes {
		if n.seq <= seq {
			h = addNote(h, n.text)
		}
	}
	return h
}

func addNote(h []string, n string) []string {
	if n == "" || (len(h) > 0 && h[len(h)-1] == n) {
		return h
	}
	return append(h, n)
}

// Size estimates the bytes that the message takes in a snapshot.
func (m *Message) Size() int {
	n := 200
	for _, p := range m.Parts {
		n += 100
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
