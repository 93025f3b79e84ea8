// The rules of callbacks: which text continues a segment, which replaces it, and which only repeats it.

package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
	"github.com/leat-dev/leat/transcript"
)

// Merge is how a callback changes the current status.
type Merge string

// The values of [Merge]. Any other value means [Replace].
const (
	Replace Merge = "replace" // the callback's text replaces the status
	Append  Merge = "append"  // the callback's text is appended to the status
)

// SegmentsMessage is the upstream key of the one message that [Segments] writes.
const SegmentsMessage = "m"

// maxEcho is the limit, in bytes, of a status that later text is compared with, because the status is stored with every commit during the
// comparison. Real statuses are shorter. A longer one is not compared, so text that repeats it is shown twice.
const maxEcho = 64 << 10

// maxShown is the limit, in bytes, of a status whose note is rebuilt when the status is extended, because the status is stored with
// every commit.
const maxShown = 4 << 10

// Segments combines the two kinds of text of an Eliza-style agent into one assistant message: text that the model streams, which is
// appended, and callbacks, which set a status. Every agent kind and dialect with callbacks uses it, so that all of them behave alike.
//
//   - Text is appended to the last text part, or opens a new one after the status.
//   - A callback replaces the status in place, or starts it. The text before and after the status is unchanged.
//     With [Append] the callback extends the status instead. A blank callback changes nothing.
//   - Each operation on the status has the resulting status, trimmed, as its note. An appended callback replaces the last note by the
//     extended one, so that the history lists the statuses that readers saw, not fragments.
//   - A callback that equals the streamed text, both trimmed, empties the status, because readers already see that text.
//   - Text that repeats the status is buffered while it is a prefix of the status. If it differs, all of it is emitted; if it equals
//     the status when the message ends or another callback arrives, it is dropped.
//
// An incomplete UTF-8 sequence at the end of a text is buffered too. The zero value is ready to use. Segments is not safe for
// concurrent use.
type Segments struct {
	s    segments
	last struct { // the key of the last text part, so that a delta needs no memory for it
		ordinal int
		key     string
	}
}

// segments is the stored state of [Segments].
type segments struct {
	HasMessage bool `json:"begun,omitempty"`
	Closed     bool `json:"closed,omitempty"`
	Parts      int  `json:"parts,omitempty"` // the last ordinal assigned to a part
	Text       int  `json:"text,omitempty"`  // ordinal of the open text part, or 0
	Slot       int  `json:"slot,omitempty"`  // ordinal of the status part, or 0

	Status Snapshot `json:"status,omitzero"` // length and hash of the status that readers see
	// StatusText is the text of the status, for the note of an extended status. It is empty if the status is longer than maxShown.
	StatusText string `json:"shown,omitempty"`
	// Hidden is the status that was emptied because it equals the text. A later append may make it differ and visible again.
	HiddenStatus string `json:"hidden,omitempty"`

	AllText trimmed `json:"said,omitzero"` // all streamed text, its parts joined by blank lines
	Last    trimmed `json:"last,omitzero"` // the last text part

	Echo   *echo  `json:"echo,omitempty"` // set while the status is the last segment
	Buffer string `json:"held,omitempty"` // buffered text, which has repeated the status so far
	Raw    Text   `json:"raw,omitzero"`
}

// echo is the rest of the status that text may still repeat. White space around the status and the text is ignored.
type echo struct {
	Remaining string `json:"rest"`
	HasText   bool   `json:"begun,omitempty"`
}

// repeats advances the echo by the next text and reports whether all of it repeats the status. After false, the echo must be dropped.
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

// isComplete reports whether the text has repeated the whole status.
func (e *echo) isComplete() bool { return e.HasText && blank(e.Remaining) }

// blank reports whether s has nothing but white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Begin returns the start of the message, or nothing if the message has started. A decoder that adds its own parts to the message, such
// as tools, must emit it before them.
func (g *Segments) Begin() []event.Event {
	if g.s.HasMessage || g.s.Closed {
		return nil
	}
	g.s.HasMessage = true
	return []event.Event{{Type: event.MessageStart, Message: SegmentsMessage, Body: &event.Body{Role: event.Assistant}}}
}

// Text returns the operations for a delta of the model's text.
func (g *Segments) Text(text string) []event.Event {
	if g.s.Closed {
		return nil
	}
	return g.addText(g.s.Raw.Raw(text))
}

// addText is Text after incomplete characters have been buffered.
func (g *Segments) addText(text string) []event.Event {
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

// say emits text: it ends the comparison with the status and appends to the open text part, or to a new one.
func (g *Segments) say(text string) []event.Event {
	s := &g.s
	s.Buffer, s.Echo = "", nil
	ops := g.Begin()
	if s.Text == 0 {
		s.Parts++
		s.Text = s.Parts
		s.Last = trimmed{}
		s.AllText.add(event.JoinBlank)
		ops = append(ops, start(g.textKey(), event.KindText))
	}
	s.AllText.add(text)
	s.Last.add(text)
	return append(ops, event.Event{Type: event.PartAppend, Message: SegmentsMessage, Part: g.textKey(), Text: text})
}

// Callback returns the operations for a callback. Readers see its text unchanged; only comparisons and notes trim it.
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

// extend appends to a visible status. Text that repeats the status may now repeat the extended one, unless that is above maxEcho.
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
		s.dropStatusText()
	}
	return append(ops, op)
}

// dropStatusText frees the stored status when it is longer than maxShown. From then on the note of an extended status is not rebuilt.
func (g *segments) dropStatusText() {
	if len(g.StatusText) > maxShown {
		g.StatusText = ""
	}
}

// rewrite replaces the status. extends is true if text begins with the previous status, which was hidden because it equalled the
// streamed text; the new note then replaces the last one.
func (g *Segments) rewrite(text string, extends bool) []event.Event {
	s := &g.s
	shows := s.Status.Is(text)
	if shows && s.Buffer != "" {
		return nil // the status is unchanged, so the buffered text still repeats it
	}
	ops := g.release()
	trimmedText := strings.TrimSpace(text)
	equal := s.AllText.is(trimmedText) || s.Last.is(trimmedText)
	if shows && !equal {
		g.expectEcho(text)
		return nil
	}
	ops = append(ops, g.Begin()...)
	if s.Slot == 0 {
		s.Parts++
		s.Slot = s.Parts
		ops = append(ops, start(slotKey(s.Slot), event.KindStatus))
	}
	s.HiddenStatus, s.Echo, s.StatusText = "", nil, text
	s.dropStatusText()
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
		g.expectEcho(text)
	}
	return append(ops, event.Event{Type: op, Message: SegmentsMessage, Part: slotKey(s.Slot), Text: delta, Note: transcript.Note(text), Extend: extends})
}

// expectEcho starts the comparison of later text with the status, unless that text continues an open text part.
func (g *Segments) expectEcho(status string) {
	if g.s.Text == 0 && len(status) <= maxEcho {
		g.s.Echo = &echo{Remaining: strings.TrimLeftFunc(status, unicode.IsSpace)}
	}
}

// release emits the buffered text, because the status that it has repeated is about to change.
func (g *Segments) release() []event.Event {
	if g.s.Buffer == "" {
		return nil
	}
	return g.say(g.s.Buffer)
}

// resolveEcho ends the comparison with the status. Buffered text that repeats the whole status is dropped; a prefix of it is emitted.
func (g *Segments) resolveEcho() []event.Event {
	s := &g.s
	ops := g.addText(s.Raw.Close())
	if s.Buffer == "" {
		return ops
	}
	if s.Echo.isComplete() {
		s.Buffer, s.Echo = "", nil
		return ops
	}
	return append(ops, g.say(s.Buffer)...)
}

// Break ends the open text part, because another part follows in the message, such as a tool. Later text opens a new part.
func (g *Segments) Break() []event.Event {
	ops := g.resolveEcho()
	if g.s.Text != 0 {
		ops = append(ops, g.endText())
	}
	return ops
}

// Close emits the buffered text and ends the open parts and the message, whether the stream finished, failed or was stopped. All later
// calls return nothing.
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

// endText returns the end of the open text part.
func (g *Segments) endText() event.Event {
	e := event.Event{Type: event.PartEnd, Message: SegmentsMessage, Part: g.textKey()}
	g.s.Text = 0
	return e
}

// segmentStates writes the stored state.
var segmentStates = jsonscan.NewWriter[segments]()

// State returns the whole state as JSON. It has no text except the status and the buffered text.
func (g *Segments) State() ([]byte, error) { return g.AppendState(nil) }

// AppendState appends what State returns.
func (g *Segments) AppendState(b []byte) ([]byte, error) { return segmentStates.Append(b, &g.s) }

// Restore replaces the state of g with one that State returned.
func (g *Segments) Restore(state []byte) error {
	var s segments
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("restore segments: %w", err)
	}
	if s.Buffer != "" && s.Echo == nil {
		return errors.New("restore segments: buffered text without a status that it repeats")
	}
	g.s = s
	return nil
}

func start(key string, kind event.PartKind) event.Event {
	return event.Event{Type: event.PartStart, Message: SegmentsMessage, Part: key, Body: &event.Body{Kind: kind, Join: event.JoinBlank}}
}

// textKey returns the key of the open text part.
func (g *Segments) textKey() string {
	if g.last.ordinal != g.s.Text {
		g.last.ordinal, g.last.key = g.s.Text, "t"+strconv.Itoa(g.s.Text)
	}
	return g.last.key
}

func slotKey(n int) string { return "s" + strconv.Itoa(n) }
