package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Merge says how a callback's text joins the status before it.
type Merge string

// The ways to merge. Every other value is [Replace].
const (
	Replace Merge = "replace" // it takes the place of the status before
	Append  Merge = "append"  // it extends the status as it stands
)

// SegmentsMessage is the upstream key of the one message that [Segments] writes.
const SegmentsMessage = "m"

// maxEcho bounds, in bytes, a callback text that later text is compared with: it is kept with every commit while the
// comparison is open. No status is as long; a longer one is simply not compared.
const maxEcho = 64 << 10

// maxShown bounds, in bytes, the status whose note is made anew when it is extended: it is kept with every commit.
const maxShown = 4 << 10

// Segments writes one assistant message out of two kinds of text: what the model streams, which is appended, and
// callbacks, which tell a status. They are the callback semantics of every path by which an agent can answer.
//
//   - Text goes on in the last text part, or opens one after the status.
//   - A callback rewrites the status in place, or opens it; the text before it and the text that came after it stay.
//     With [Append] it extends the status instead. A blank callback changes nothing.
//   - Each operation on the status carries the status as it is then, trimmed, as its note. An appended callback extends the last note:
//     the history has what readers saw, not the fragments.
//   - A callback that equals the streamed text, both trimmed, empties the status: the text is shown already.
//   - Text that repeats the status is held back while it is a prefix of it. As soon as it differs it is said, all of it;
//     where it is the same to its end it is dropped.
//
// An incomplete UTF-8 sequence at the end of a text is held back too. The zero value is ready to use; it is not safe
// for concurrent use.
type Segments struct{ s segments }

// segments is the state: where the message stands, and what is held back.
type segments struct {
	HasMessage bool `json:"begun,omitempty"`
	Closed     bool `json:"closed,omitempty"`
	Parts      int  `json:"parts,omitempty"` // ordinals given away
	Text       int  `json:"text,omitempty"`  // ordinal of the open text part; 0 is none
	Slot       int  `json:"slot,omitempty"`  // ordinal of the status; 0 is none

	Status Snapshot `json:"status,omitzero"` // what the status shows
	// Shown is the text of the status, from which its note is made when it is extended; empty once it is too long for that.
	StatusText string `json:"shown,omitempty"`
	// Hidden is what the status would show if it did not equal the text; an append may yet make it differ.
	HiddenStatus string `json:"hidden,omitempty"`

	AllText trimmed `json:"said,omitzero"` // all text, its parts joined by blank lines
	Last    trimmed `json:"last,omitzero"` // the last text part

	Echo   *echo  `json:"echo,omitempty"` // set while the status is the last segment
	Buffer string `json:"held,omitempty"` // text that has repeated the status so far
	Raw    Text   `json:"raw,omitzero"`
}

// echo is the rest of the status that text may yet repeat. White space around either is not compared.
type echo struct {
	Remaining string `json:"rest"`
	HasText   bool   `json:"begun,omitempty"`
}

// repeats takes the next text and reports whether all of it repeats the status. After false the echo is of no more use.
func (e *echo) repeats(s string) bool {
	if !e.HasText {
		if s = strings.TrimLeftFunc(s, unicode.IsSpace); s == "" {
			return true
		}
		e.HasText = true
	}
	n := 0
	for n < len(s) && n < len(e.Remaining) && s[n] == e.Remaining[n] {
		n++
	}
	s, e.Remaining = s[n:], e.Remaining[n:]
	return s == "" || blank(s) && blank(e.Remaining)
}

func (e *echo) isComplete() bool { return e.HasText && blank(e.Remaining) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Begin starts the message if that has not happened. Whoever writes parts of its own into the message calls it first.
func (g *Segments) Begin() []event.Event {
	if g.s.HasMessage || g.s.Closed {
		return nil
	}
	g.s.HasMessage = true
	return []event.Event{{Type: event.MessageStart, Message: SegmentsMessage, Body: &event.Body{Role: event.Assistant}}}
}

// Text appends what the model says.
func (g *Segments) Text(text string) []event.Event {
	if g.s.Closed {
		return nil
	}
	return g.hear(g.s.Raw.Raw(text))
}

// hear takes whole characters.
func (g *Segments) hear(text string) []event.Event {
	s := &g.s
	if text == "" {
		return nil
	}
	if s.Text == 0 && s.Echo != nil {
		s.Buffer += text
		if s.Echo.repeats(text) && len(s.Buffer) <= 2*maxEcho {
			return nil
		}
		text = s.Buffer
	}
	return g.say(text)
}

func (g *Segments) say(text string) []event.Event {
	s := &g.s
	s.Buffer, s.Echo = "", nil
	ops := g.Begin()
	if s.Text == 0 {
		s.Parts++
		s.Text = s.Parts
		s.Last = trimmed{}
		s.AllText.add(event.JoinBlank)
		ops = append(ops, start(textKey(s.Text), event.KindText))
	}
	s.AllText.add(text)
	s.Last.add(text)
	return append(ops, event.Event{Type: event.PartAppend, Message: SegmentsMessage, Part: textKey(s.Text), Text: text})
}

// Callback tells a status. The text is shown as it is.
func (g *Segments) Callback(text string, merge Merge) []event.Event {
	s := &g.s
	text = strings.ToValidUTF8(text, "\ufffd")
	if s.Closed || text == "" {
		return nil
	}
	if merge == Append && s.Status.Len() > 0 {
		return g.extend(text)
	}
	if blank(text) {
		return nil
	}
	prefix := ""
	if merge == Append {
		prefix = s.HiddenStatus
	}
	return g.rewrite(prefix+text, prefix != "")
}

// extend appends to a status that is shown.
func (g *Segments) extend(text string) []event.Event {
	s := &g.s
	ops := g.release()
	if s.Echo != nil {
		s.Echo.Remaining += text
		if len(s.Echo.Remaining) > maxEcho {
			s.Echo = nil
		}
	}
	s.Status.Append(text)
	op := event.Event{Type: event.PartAppend, Message: SegmentsMessage, Part: slotKey(s.Slot), Text: text}
	if s.StatusText != "" {
		before := transcript.Note(s.StatusText)
		s.StatusText += text
		if note := transcript.Note(s.StatusText); note != before {
			op.Note, op.Extend = note, true
		}
		s.forget()
	}
	return append(ops, op)
}

// forget lets go of a status whose note is as long as notes get. Each longer one would have to be carried by every extension.
func (g *segments) forget() {
	if len(g.StatusText) > maxShown {
		g.StatusText = ""
	}
}

// rewrite gives the status a new text. extends says that it begins with the one before, which the text hid.
func (g *Segments) rewrite(text string, extends bool) []event.Event {
	s := &g.s
	shows := s.Status.Is(text)
	if shows && s.Buffer != "" {
		return nil // it repeats itself, as the text held back repeats it
	}
	ops := g.release()
	trimmedText := strings.TrimSpace(text)
	equal := s.AllText.is(trimmedText) || s.Last.is(trimmedText)
	if shows && !equal {
		g.listen(text)
		return nil
	}
	ops = append(ops, g.Begin()...)
	if s.Slot == 0 {
		s.Parts++
		s.Slot = s.Parts
		ops = append(ops, start(slotKey(s.Slot), event.KindStatus))
	}
	s.HiddenStatus, s.Echo, s.StatusText = "", nil, text
	s.forget()
	op, delta := event.PartReplace, ""
	if equal {
		s.Status = Snapshot{}
		if len(text) <= maxEcho {
			s.HiddenStatus = text
		}
	} else {
		op, delta = s.Status.Next(text)
		if s.Text != 0 && s.Text < s.Slot {
			ops = append(ops, g.endText())
		}
		g.listen(text)
	}
	return append(ops, event.Event{Type: op, Message: SegmentsMessage, Part: slotKey(s.Slot), Text: delta, Note: transcript.Note(text), Extend: extends})
}

// listen begins to compare the text that follows with a status, unless that text goes on in an open part.
func (g *Segments) listen(status string) {
	if g.s.Text == 0 && len(status) <= maxEcho {
		g.s.Echo = &echo{Remaining: strings.TrimLeftFunc(status, unicode.IsSpace)}
	}
}

// release says text that was held back, since the status that it may have repeated is about to change.
func (g *Segments) release() []event.Event {
	if g.s.Buffer == "" {
		return nil
	}
	return g.say(g.s.Buffer)
}

// settle ends the comparison with the status: text that is the same to its end is dropped, a part of it is said.
func (g *Segments) settle() []event.Event {
	s := &g.s
	ops := g.hear(s.Raw.Close())
	if s.Buffer == "" {
		return ops
	}
	if s.Echo.isComplete() {
		s.Buffer, s.Echo = "", nil
		return ops
	}
	return append(ops, g.say(s.Buffer)...)
}

// Break says that something else follows in the message, such as a tool: later text opens a part of its own.
func (g *Segments) Break() []event.Event {
	ops := g.settle()
	if g.s.Text != 0 {
		ops = append(ops, g.endText())
	}
	return ops
}

// Close ends the message, whether the stream came to its end, failed or was stopped: what is held back is said. Later
// calls of any method return nothing.
func (g *Segments) Close() []event.Event {
	s := &g.s
	if s.Closed {
		return nil
	}
	ops := g.Break()
	s.Closed, s.StatusText = true, ""
	if s.Slot != 0 {
		ops = append(ops, event.Event{Type: event.PartEnd, Message: SegmentsMessage, Part: slotKey(s.Slot)})
	}
	if s.HasMessage {
		ops = append(ops, event.Event{Type: event.MessageEnd, Message: SegmentsMessage})
	}
	return ops
}

func (g *Segments) endText() event.Event {
	e := event.Event{Type: event.PartEnd, Message: SegmentsMessage, Part: textKey(g.s.Text)}
	g.s.Text = 0
	return e
}

// State returns all that Segments holds, as JSON.
func (g *Segments) State() ([]byte, error) { return json.Marshal(&g.s) }

// Restore takes up a state in place of what g holds.
func (g *Segments) Restore(state []byte) error {
	var s segments
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("restore segments: %w", err)
	}
	if s.Buffer != "" && s.Echo == nil {
		return errors.New("restore segments: text is held back for nothing")
	}
	g.s = s
	return nil
}

func start(key string, kind event.PartKind) event.Event {
	return event.Event{Type: event.PartStart, Message: SegmentsMessage, Part: key, Body: &event.Body{Kind: kind, Join: event.JoinBlank}}
}

func textKey(n int) string { return "t" + strconv.Itoa(n) }
func slotKey(n int) string { return "s" + strconv.Itoa(n) }
