package eliza

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/sse"
)

// render turns successive states of one turn into the bytes of its stream. Its zero value begins a stream for a client
// that holds nothing.
type render struct {
	tokens tokens
	status progress
	// user is the message that this stream answers, where it isn't the one that began the turn.
	user string
	over bool
}

// next appends to b the frames that take the client from the state before to s, and reports whether the last of them
// ended the stream. Only the last frame carries the cursor: a client that was cut half-way asks again from the one before.
func (r *render) next(b []byte, s *state) (_ []byte, over bool, err error) {
	if r.over {
		return b, true, nil
	}
	var frames [][]byte
	add := func(v any) {
		f, e := encode(v)
		if e != nil && err == nil {
			err = e
		}
		frames = append(frames, f)
	}
	if !s.ended() && !s.progress.same(r.status) {
		r.status = s.progress
		add(s.progress)
	}
	text := s.text
	end, ended := s.answer.ended()
	if ended {
		text = end.text
	}
	if f := r.tokens.next(nil, text); f != nil {
		frames = append(frames, f)
	}
	if ended {
		if r.user != "" {
			end.UserMessageID = r.user
		}
		add(done{Type: "done", FullText: text, outcome: end})
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
	r.over = s.ended()
	return b, r.over, nil
}

// encode is json.Marshal, but leaves <, > and & as they are. The result has no line end.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
