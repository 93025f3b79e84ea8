package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// minSnapshot is the least number of bytes after which a delta-v2 stream repeats the whole text.
const minSnapshot = 2048

// tokens turns successive renders of a turn's text into token frames. It compares states, so whatever led from one to
// the next (deltas, callbacks, retractions, several at once) comes out right.
type tokens struct {
	deltas bool // delta-v2: the whole text only now and then
	// unknown says that the client may hold an earlier state of the text: the first frame replaces it.
	unknown bool

	shown  string // what the client holds
	length int    // delta-v2: bytes of the text when it was last sent whole
	since  int    // delta-v2: bytes sent since
}

// next appends the JSON of the frame that takes the client to text, nothing where it holds it already.
func (t *tokens) next(b []byte, text string) []byte {
	if t.shown == text && !t.unknown {
		return b
	}
	suffix, extends := strings.CutPrefix(text, t.shown)
	extends = extends && !t.unknown
	t.shown, t.unknown = text, false
	if !t.deltas {
		if !extends {
			suffix = text
		}
		return frame(b, suffix, true, text, true)
	}
	if !extends {
		t.length, t.since = len(text), 0
		return frame(b, "", false, text, true)
	}
	t.since += len(suffix)
	whole := t.since >= max(minSnapshot, t.length)
	if whole {
		t.length, t.since = len(text), 0
	}
	return frame(b, suffix, true, text, whole)
}

// frame appends a token frame with either text or both. It is made by hand, since a long answer is sent thousands of times.
func frame(b []byte, text string, hasText bool, full string, hasFull bool) []byte {
	b = append(b, `{"type":"token"`...)
	if hasText {
		b = event.AppendString(append(b, `,"text":`...), text)
	}
	if hasFull {
		b = event.AppendString(append(b, `,"fullText":`...), full)
	}
	return append(b, '}')
}
