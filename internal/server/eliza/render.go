package eliza

import (
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/sse"
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
