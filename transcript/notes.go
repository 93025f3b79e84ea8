// The histories of status parts: texts that were replaced and that readers may look at later.

package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
)

const (
	// MaxNotes is the limit of notes in a history, maxNotesBytes that of their bytes together. Above either, the oldest notes are dropped. A
	// reader gets the whole list with each merged operation, so the list must stay small.
	MaxNotes      = 200
	maxNotesBytes = 32 << 10
	// maxNote is the limit of one note that [Note] returns, in bytes.
	maxNote = 4 << 10
)

// note is one entry of a callback history.
type note struct {
	seq  int64 // of the operation that added it; 0 if it came with a snapshot
	text string
}

// Note returns the entry of a history for the text of a callback: the text without the white space around it, shortened with an ellipsis to
// 4 KiB.
func Note(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxNote {
		return text
	}
	n := maxNote
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// JoinHistories returns the entries of several histories as one, in their order, without blanks and adjacent equals and within the limits.
func JoinHistories(histories ...[]string) []string {
	var h []string
	for _, history := range histories {
		for _, n := range history {
			h = addNote(h, n, false)
		}
	}
	return h
}

// addNote returns a history with one more entry. If extend is true, the entry replaces the last one. Blanks and adjacent equals are dropped.
// The entries of h are never overwritten, because other slices share them.
func addNote(h []string, n string, extend bool) []string {
	n = strings.TrimSpace(n)
	if n == "" {
		return h
	}
	if extend && len(h) > 0 {
		h = slices.Clone(h[:len(h)-1])
	}
	if len(h) > 0 && h[len(h)-1] == n {
		return h
	}
	h = append(h, n)
	return h[surplus(len(h), func(i int) string { return h[i] }):]
}

// surplus returns how many of the oldest of n notes exceed the limits. The newest note always stays, even if it is too long by itself.
func surplus(n int, at func(i int) string) int {
	// Count the notes that fit, from the newest.
	i, size := n, 0
	for i > 0 && n-i < MaxNotes {
		if size += len(at(i - 1)); size > maxNotesBytes && i < n {
			break
		}
		i--
	}
	return i
}

// addNote applies the note of an operation, or its history, which replaces the list. It is addNote for a list whose entries have a
// seq, and it records in rewritten when an entry was changed or dropped, because the list as of an earlier seq is unknown from then
// on.
func (p *Part) addNote(e *event.Event) {
	p.notedAt = e.Seq
	if e.History != nil {
		p.setNotes(e.History, e.Seq)
		return
	}
	text := strings.TrimSpace(e.Note)
	if text == "" {
		return
	}
	if e.Extend && len(p.notes) > 0 {
		p.notes, p.rewritten = slices.Clone(p.notes[:len(p.notes)-1]), e.Seq // copies of the part share the array
	}
	if n := len(p.notes); n > 0 && p.notes[n-1].text == text {
		return
	}
	p.notes = append(p.notes, note{seq: e.Seq, text: text})
	// Only the start of the slice moves, so that copies of the part keep their notes.
	if n := surplus(len(p.notes), func(i int) string { return p.notes[i].text }); n > 0 {
		p.notes, p.rewritten = p.notes[n:], e.Seq
	}
}

// setNotes replaces the list. All its entries get the given seq.
func (p *Part) setNotes(history []string, seq int64) {
	list := JoinHistories(history)
	p.notes, p.notedAt, p.rewritten = make([]note, 0, len(list)), seq, seq
	for _, n := range list {
		p.notes = append(p.notes, note{seq: seq, text: n})
	}
}

// History returns the part's notes, oldest first, without blanks and adjacent equals.
func (p *Part) History() []string {
	h, _ := p.HistoryAt(max(p.notedAt, p.rewritten)) // always known, because nothing was rewritten after that seq
	return h
}

// HistoryAt returns the part's notes as of seq. It reports false if they are not known, because an operation from after seq has
// changed or dropped one of them.
func (p *Part) HistoryAt(seq int64) ([]string, bool) {
	if seq < p.rewritten {
		return nil, false
	}
	var h []string
	for _, n := range p.notes {
		if n.seq > seq {
			break
		}
		h = append(h, n.text)
	}
	return h, true
}
