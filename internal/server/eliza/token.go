package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// minSnapshot is the smallest number of bytes after which a delta-v2 stream repeats the full text.
const minSnapshot = 2048

// tokens turns successive texts of a turn into token frames. It compares states, so the frames are right whatever changed the
// text: deltas, callbacks, retractions, or several of them.
type tokens struct {
	deltas bool // delta-v2: send the full text only occasionally
	// unknown means that the client may have an earlier text, so the first frame replaces it.
	unknown bool

	current string // the client's text
	length  int    // delta-v2: length of the last full text, in bytes
	since   int    // delta-v2: bytes sent after it
}

// next appends the JSON of the frame that takes the client to text. If the client has it already, next appends nothing.
//
// If the new text extends the old one, only the suffix is sent. In the original protocol each frame also
// has the full text. In delta-v2 the full text follows only when the bytes since the last full text reach
// its length, or minSnapshot, so that
// the length of the stream grows only in proportion to the text. Any other
// change, such as a callback that replaced the text, sends the full text, and a client must replace what
// it shows.
func (t *tokens) next(b []byte, text string) []byte {
	if t.current == text && !t.unknown {
		return b
	}
	suffix, extends := strings.CutPrefix(text, t.current)
	extends = extends && !t.unknown
	t.current, t.unknown = text, false
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
	needsFull := t.since >= max(minSnapshot, t.length)
	if needsFull {
		t.length, t.since = len(text), 0
	}
	return frame(b, suffix, true, text, needsFull)
}

// frame appends a token frame with text, fullText or both. It avoids encoding/json because a long answer takes thousands of
// frames.
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
