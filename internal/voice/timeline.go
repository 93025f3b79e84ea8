// Which part of an answer's text the samples of a generation are, and so how far a person has heard it.

package voice

import (
	"time"
	"unicode"
	"unicode/utf8"
)

// HeardMark says how far a person has heard an answer.
type HeardMark struct {
	Turn string
	// Offset is how much of the visible text of the turn was heard, in bytes. It is at the end of a word.
	Offset int
	// IsWhole means that the whole answer was heard.
	IsWhole bool
}

// maxSegments is how many sentences a timeline remembers. A client that plays has to report in time; at most a few are under way.
const maxSegments = 256

// segment is a sentence in the timeline.
type segment struct {
	answer  *answer
	span    *span
	start   int64 // sample of the generation at which it began; negative if its beginning was played on an earlier connection
	samples int64 // of the sentence that have arrived
	isWhole bool  // samples is final
	runes   int   // of the text that is said aloud, to estimate the length before it is known
}

// runeSamples is about the number of samples of a spoken character: 15 characters are spoken in a second.
const runeSamples = SpeechRate / 15

// length returns the number of samples of the sentence, which is estimated while its audio is made.
func (g *segment) length() int64 {
	if g.isWhole {
		return g.samples
	}
	return max(g.samples, int64(g.runes)*runeSamples)
}

// timeline is the order of sentences in the current generation.
type timeline struct {
	segments    []*segment
	sentSamples int64 // samples that were written
	played      int64 // samples that the client reported
	reported    bool  // the client has reported at least once
}

// begin adds a sentence, and forgets the oldest if there are too many.
func (t *timeline) begin(g *segment) {
	t.segments = append(t.segments, g)
	if len(t.segments) > maxSegments {
		t.segments[0] = nil
		t.segments = t.segments[1:]
	}
}

// report stores how many samples the client has played. Reports never go back, and never exceed what was sent.
func (t *timeline) report(played int64) {
	t.reported = true
	t.played = max(t.played, min(played, t.sentSamples))
}

// at returns how far the answer was heard whose sentence is played at a sample, or false if none was begun before it.
func (t *timeline) at(played int64) (HeardMark, bool) {
	var g *segment
	for _, s := range t.segments {
		if s.start > played || s.start == played && g != nil {
			break
		}
		g = s
	}
	if g == nil {
		return HeardMark{}, false
	}
	h := HeardMark{Turn: g.answer.turn, Offset: g.span.end}
	if n := played - g.start; n < g.length() {
		h.Offset = g.span.start + wordEnd(textOf(g.answer.text, g.span), float64(n)/float64(g.length()))
	}
	return h, true
}

// textOf returns the text of a span, whose offsets may be outside of a text that became shorter.
func textOf(text string, s *span) string {
	end := min(s.end, len(text))
	return text[min(s.start, end):end]
}

// wordEnd returns the offset of the last end of a word within a fraction of a text. A character of a script without spaces counts as
// a word.
func wordEnd(text string, fraction float64) int {
	limit := int(fraction * float64(len(text)))
	end := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			next = i + 1
		}
		if next > limit {
			break
		}
		following, _ := utf8.DecodeRuneInString(text[next:])
		if isIdeograph(r) || next == len(text) || !unicode.IsSpace(r) && unicode.IsSpace(following) {
			end = next
		}
	}
	return end
}

// isIdeograph reports whether a character is of a script that is written without spaces.
func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// bytesPerSecond is the rate of PCM to the client.
const bytesPerSecond = SpeechRate * 2

// schedule is when the audio that was sent will have been played. It counts bytes, so that no rounding adds up.
type schedule struct {
	since time.Time // when the client began to play without a pause
	bytes int64     // sent since then
}

// duration returns how long audio of some bytes plays.
func duration(bytes int64) time.Duration {
	return time.Duration(bytes) * time.Second / bytesPerSecond
}

// lead returns how much of the audio is not played yet.
func (s *schedule) lead(at time.Time) time.Duration {
	if s.bytes == 0 {
		return 0
	}
	return max(0, duration(s.bytes)-at.Sub(s.since))
}

// add counts bytes that are sent now. If nothing was left to play, they begin a new stretch.
func (s *schedule) add(at time.Time, bytes int) {
	if s.lead(at) == 0 {
		*s = schedule{since: at}
	}
	s.bytes += int64(bytes)
}
