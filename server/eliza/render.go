package eliza

import (
	"encoding/json"

	"github.com/leat-dev/leat/sse"
)

// render turns successive states of one turn into the bytes of its stream. Its zero value begins a stream for a client
// that holds nothing.
type render struct {
	tokens tokens
	status progress
	over   bool
}

// next appends to b the frames that take the client from the state before to a, and reports whether the last of them
// ended the stream. Only the last frame carries the cursor: a client that was cut half-way asks again from the one before.
func (r *render) next(b []byte, a answer, cursor string) ([]byte, bool, error) {
	if r.over {
		return b, true, nil
	}
	var frames [][]byte
	if a.turn.Unfinished() {
		if p := a.progress(); !p.same(r.status) {
			r.status = p
			f, err := encode(p)
			if err != nil {
				return b, false, err
			}
			frames = append(frames, f)
		}
	}
	text := a.text()
	e, ended := a.ended()
	if ended && e.FailureKind != "" {
		text = e.FullText
	}
	if f := r.tokens.next(nil, text); f != nil {
		frames = append(frames, f)
	}
	if !a.turn.Unfinished() {
		var last any = e
		if !ended {
			last = a.failed()
		}
		f, err := encode(last)
		if err != nil {
			return b, false, err
		}
		frames = append(frames, f)
		r.over = true
	}
	for i, f := range frames {
		id := ""
		if i == len(frames)-1 {
			id = cursor
		}
		var err error
		if b, err = sse.AppendEvent(b, id, "", f); err != nil {
			return b, false, err
		}
	}
	return b, r.over, nil
}

// encode is json.Marshal that leaves <, > and & as they are.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return b, err
}
