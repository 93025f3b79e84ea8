// What of an answer is spoken: the answer's visible text may grow and may be replaced, and each sentence is spoken once.

package voice

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/voice/sentence"
)

// span is a sentence of an answer that was taken to be spoken. Its offsets follow the answer's text if an earlier part is replaced.
type span struct {
	start, end int  // bytes of the answer's text
	isBegun    bool // its first sample was sent, or it was spoken on an earlier connection
	isDropped  bool // its text was replaced before that
}

// answer is the visible text of one turn, and which of its sentences were taken to be spoken.
type answer struct {
	turn          string
	text          string // the offsets of spans refer to it
	isEnded       bool   // the text is final
	isRegrowing   bool   // the newest text is a beginning of what was spoken, so it may become the same text again
	newSegmenter  func() segmenter
	segmenter     segmenter
	writtenLength int // how much of the text the segmenter got
	from          int // units up to here are not spoken, because they were
	isClosed      bool
	isFlushed     bool // nothing was written to the segmenter since the last flush
	units         []sentence.Unit
	spans         []*span // in the order of the text
	// spokenTexts are sentences that were spoken and then replaced. If one of them comes again, it isn't spoken a second time.
	spokenTexts []string
}

// newAnswer returns an answer of which the first start bytes were spoken before.
func newAnswer(turn string, start int, newSegmenter func() segmenter) *answer {
	a := &answer{turn: turn, newSegmenter: newSegmenter, isFlushed: true}
	if start > 0 {
		a.spans = []*span{{end: start, isBegun: true}}
	}
	a.restart(start)
	return a
}

// restart makes a new segmenter begin, whose units are spoken from an offset on. It gets the whole text, because what a text means
// depends on what precedes it, as in a block of code.
func (a *answer) restart(offset int) {
	a.segmenter, a.writtenLength, a.from, a.units, a.isClosed = a.newSegmenter(), 0, offset, nil, false
}

// setText replaces the text by a newer one.
func (a *answer) setText(text string) {
	if strings.HasPrefix(text, a.text) {
		if a.isRegrowing {
			a.isRegrowing = false
			a.restart(a.takenEnd())
		}
		a.text = text
		a.write()
		return
	}
	prefix := commonPrefix(a.text, text)
	a.drop(prefix)
	speechEnd := a.takenEnd()
	switch {
	case prefix >= speechEnd: // nothing that was spoken has changed
		a.restart(speechEnd)
	case prefix == len(text):
		// A part of what was spoken is left. Agents that replace a text by a snapshot of it do so in steps.
		a.isRegrowing, a.units = true, nil
		return
	default:
		a.restart(a.replace(text, prefix))
	}
	a.isRegrowing = false
	a.text = text
	a.write()
}

// drop drops the sentences behind an offset that have not begun.
func (a *answer) drop(offset int) {
	for i, s := range a.spans {
		if s.isBegun || s.end <= offset {
			continue
		}
		for _, s := range a.spans[i:] {
			if s.isDropped = !s.isBegun; s.isBegun { // take has left it out
				a.spokenTexts = append(a.spokenTexts, strings.TrimSpace(a.text[s.start:s.end]))
			}
		}
		a.spans = a.spans[:i]
		return
	}
}

// replace adjusts the spans to a text that differs within what was spoken, and returns the offset at which speech continues. If a
// sentence that was spoken follows the difference unchanged, speech continues where it is, because it can't go back in the text.
// Otherwise the changed sentence is spoken.
func (a *answer) replace(text string, prefix int) int {
	n, from := 0, 0
	for n < len(a.spans) && a.spans[n].end <= prefix {
		from = a.spans[n].end
		n++
	}
	// Whole sentences are compared: those that begin alike must not count as partly unchanged.
	suffix := commonSuffix(a.text[from:], text[from:])
	tail, shift := len(a.text)-suffix, len(text)-len(a.text)
	if last := a.spans[len(a.spans)-1]; a.textStart(last) >= tail {
		changed := a.spans[n:]
		for len(changed) > 0 && a.textStart(changed[len(changed)-1]) >= tail {
			s := changed[len(changed)-1]
			s.start, s.end = max(from, s.start+shift), s.end+shift
			changed = changed[:len(changed)-1]
		}
		end := a.spans[n+len(changed)].start
		for _, s := range changed { // they stand for the text that was passed
			s.start, s.end, from = from, end, end
		}
		return last.end
	}
	for _, s := range a.spans[n:] {
		a.spokenTexts = append(a.spokenTexts, strings.TrimSpace(a.text[s.start:s.end]))
		s.start, s.end = min(s.start, prefix), min(s.end, prefix) // they are over; only what was heard of them may be asked for
	}
	a.spans = a.spans[:n]
	return from
}

// textStart returns the offset of a span's first character that isn't white space.
func (a *answer) textStart(s *span) int {
	return s.end - len(strings.TrimLeft(a.text[s.start:s.end], " \n"))
}

// takenEnd returns the offset behind the last sentence that was taken.
func (a *answer) takenEnd() int {
	if len(a.spans) == 0 {
		return 0
	}
	return a.spans[len(a.spans)-1].end
}

// write passes new text to the segmenter.
func (a *answer) write() {
	if a.writtenLength == len(a.text) {
		return
	}
	delta := a.text[a.writtenLength:]
	a.writtenLength, a.isFlushed = len(a.text), false
	a.add(a.segmenter.Write(delta))
}

// add adds the sentences that the segmenter has found, unless they were spoken or have nothing to say.
//
// The segmenter begins at the start of the text, so it finds the sentences that were spoken again. Their boundaries are the same, except
// where a pause of the agent has ended one early.
func (a *answer) add(units []sentence.Unit) {
	for _, u := range units {
		switch {
		case u.Text == "" || u.End <= a.from:
		case u.Start < a.from:
			// Its beginning was spoken when the agent paused there.
			a.addRest(u.End)
		default:
			a.units = append(a.units, u)
		}
	}
}

// addRest adds what is left of a sentence whose beginning was spoken.
func (a *answer) addRest(end int) {
	start := a.from
	for start < end && !utf8.RuneStart(a.text[start]) { // a client that resumes may name any offset
		start++
	}
	s := a.newSegmenter()
	for _, u := range append(s.Write(a.text[start:end]), s.Close()...) {
		if u.Text != "" {
			u.Start, u.End = u.Start+start, u.End+start
			a.units = append(a.units, u)
		}
	}
}

// flush makes the segmenter give what it holds back because more text could belong to it.
func (a *answer) flush() {
	if a.isFlushed || a.isClosed || a.isRegrowing {
		return
	}
	a.isFlushed = true
	a.add(a.segmenter.Flush())
}

// end says that the text is final.
func (a *answer) end() {
	a.isEnded = true
	a.closeSegmenter()
}

// closeSegmenter takes the last sentences of a text that is final. A text that is only a part of what was spoken has none.
func (a *answer) closeSegmenter() {
	if a.isClosed || a.isRegrowing {
		return
	}
	a.isClosed = true
	a.add(a.segmenter.Close())
}

// take returns the next sentence to speak, and its span.
func (a *answer) take() (sentence.Unit, *span, bool) {
	for len(a.units) > 0 {
		u := a.units[0]
		a.units = a.units[1:]
		s := &span{start: u.Start, end: u.End}
		a.spans = append(a.spans, s)
		i := slices.Index(a.spokenTexts, strings.TrimSpace(a.text[u.Start:u.End]))
		if i < 0 {
			return u, s, true
		}
		a.spokenTexts = slices.Delete(a.spokenTexts, i, i+1)
		s.isBegun = true
	}
	return sentence.Unit{}, nil, false
}

// isTaken reports whether there is nothing left to take, now and later.
func (a *answer) isTaken() bool { return a.isEnded && len(a.units) == 0 }

// commonPrefix returns the length of the longest common beginning of two texts.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

// commonSuffix returns the length of the longest common end of two texts.
func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

// segmenter divides a growing text into units, as [sentence.Segmenter] does. It need not be safe for concurrent use.
type segmenter interface {
	// Write adds text and returns the units that are complete.
	Write(delta string) []sentence.Unit
	// Flush returns the units that probably are complete, because the text doesn't grow at the moment.
	Flush() []sentence.Unit
	// Close returns the rest, because the text is complete.
	Close() []sentence.Unit
}

var _ segmenter = (*sentence.Segmenter)(nil)

// noUnits is a segmenter that finds nothing.
type noUnits struct{}

func (noUnits) Write(string) []sentence.Unit { return nil }
func (noUnits) Flush() []sentence.Unit       { return nil }
func (noUnits) Close() []sentence.Unit       { return nil }
