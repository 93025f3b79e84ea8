package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
)

const (
	// MaxNotes bounds a history, and maxNotesBytes its texts together: the newest notes stay. A reader gets the whole list with
	// each merged operation.
	MaxNotes      = 200
	maxNotesBytes = 32 << 10
	// maxNote bounds one note that [Note] makes, in bytes.
	maxNote = 4 << 10
)

// note is one entry of a callback history.
type note struct {
	seq  int64
	text string
}

// Note returns the entry of a history for the text of a callback: the text without the white space around it. A text that is too
// long is cut.
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

// JoinHistories returns the entries of several histories, one after another, as one.
func JoinHistories(histories ...[]string) []string {
	var h []string
	for _, history := range histories {
		for _, n := range history {
			h = addNote(h, n, false)
		}
	}
	return h
}

// addNote adds an entry to a history, or replaces the last one, which it extends. Blanks and adjacent equals are dropped. The
// entries of h stay as they are for others that share them.
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

// surplus returns how many of the oldest of n notes are too many. One note at least stays.
func surplus(n int, at func(i int) string) int {
	i, size := n, 0
	for i > 0 && n-i < MaxNotes {
		if size += len(at(i - 1)); size > maxNotesBytes && i < n {
			break
		}
		i--
	}
	return i
}

// take adds the note of an operation, or replaces the list.
func (p *Part) take(e *event.Event) {
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
	if n := surplus(len(p.notes), func(i int) string { return p.notes[i].text }); n > 0 {
		p.notes, p.rewritten = p.notes[n:], e.Seq
	}
}

// setNotes replaces the list.
func (p *Part) setNotes(history []string, seq int64) {
	list := JoinHistories(history)
	p.notes, p.notedAt, p.rewritten = make([]note, 0, len(list)), seq, seq
	for _, n := range list {
		p.notes = append(p.notes, note{seq: seq, text: n})
	}
}

// History returns the part's notes, oldest first, without blanks and adjacent equals.
func (p *Part) History() []string {
	h, _ := p.HistoryAt(max(p.notedAt, p.rewritten))
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
