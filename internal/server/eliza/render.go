package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

// render turns successive states of a turn into the bytes of its stream. The zero value starts a stream for a client without
// any text.
type render struct {
	tokens tokens
	status progress
	// user is the message that this stream answers, if another message started the turn.
	user     string
	finished bool
}

// next appends the frames that take the client from the last state to s, and reports whether they end the stream. Only the last
// frame has the cursor, so that a client that is interrupted between them resumes before them all.
//
// The order of the frames is fixed: the activity, then the text, then done. A state that changes nothing
// for the client produces no frame. It has no clock and no connection, so that tests can drive it with any
// sequence of states.
func (r *render) next(b []byte, s *state) (_ []byte, finished bool, err error) {
	if r.finished {
		return b, true, nil
	}
	var frames [][]byte
	add := func(v any) {
		f, e := server.Marshal(v)
		if e != nil && err == nil {
			err = e
		}
		frames = append(frames, f)
	}
	if !s.hasEnded() && !s.progress.equals(r.status) {
		r.status = s.progress
		add(s.progress)
	}
	text := s.text
	end, hasEnded := s.answer.outcome()
	if hasEnded {
		text = end.text
	}
	if f := r.tokens.next(nil, text); f != nil {
		frames = append(frames, f)
	}
	if hasEnded {
		if r.user != "" {
			end.UserMessageID = r.user
		}
		add(doneFrame{Type: "done", FullText: text, outcome: end})
	}
	if err != nil {
		return b, false, err
	}
	for i, f := range frames {
		id := ""
		if i == len(frames)-1 {
			id = s.cursor
		}
		if b, err = sse.AppendEvent(b, id, "", f); err != nil {
			return b, false, err
		}
	}
	r.finished = s.hasEnded()
	return b, r.finished, nil
}

// progress is the current activity of a turn. Eliza's newest clients show it, older ones ignore it.
type progress struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"` // thinking, streaming, running_action or running_tool
	Label    string `json:"label,omitempty"`
	ToolName string `json:"toolName,omitempty"`
}

// progress returns the activity of the newest part that still grows. If no part grows and the newest one is a text, it returns
// streaming. Otherwise a process that exits after its text would be shown as thinking for a moment.
//
// An open request comes first: while the agent waits for a person, nothing else is going on. Otherwise the
// messages and their parts are examined from the newest to the oldest, and the first part that is not
// final decides. Without any, the turn is thinking, with the phase that the agent reported as the label.
func (a answer) progress() progress {
	thinking := progress{Type: "status", Kind: "thinking", Label: a.turn.Phase}
	p := thinking
	if a.turn.State == transcript.TurnWaiting && len(a.turn.Requests) > 0 {
		r := a.turn.Requests[0]
		return progress{Type: "status", Kind: "running_tool", ToolName: r.Tool, Label: r.Prompt}
	}
	newest := true
	for i := len(a.messages) - 1; i >= 0; i-- {
		for j := len(a.messages[i].Parts) - 1; j >= 0; j-- {
			part := a.messages[i].Parts[j]
			if part.Final {
				if newest && part.Kind == event.KindText {
					p = progress{Type: "status", Kind: "streaming"}
				}
				newest = false
				continue
			}
			newest = false
			switch part.Kind {
			case event.KindText:
				return progress{Type: "status", Kind: "streaming"}
			case event.KindStatus:
				return progress{Type: "status", Kind: "running_action"}
			case event.KindTool:
				return progress{Type: "status", Kind: "running_tool", ToolName: part.Name, Label: part.Title}
			case event.KindReasoning:
				return thinking
			}
		}
	}
	return p
}

// equals reports whether a client would show q in the same way. Labels are ignored, because a title that grows would cause a
// frame for each change.
func (p progress) equals(q progress) bool { return p.Kind == q.Kind && p.ToolName == q.ToolName }

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
