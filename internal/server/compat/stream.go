package compat

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// stream streams a turn to its end.
//
// The stream is not resumable, as in the APIs. A failed write ends it, and the turn continues: its answer
// is in the conversation. When the gateway restarts or the token expires, the client still gets an error
// frame, because it is connected and would otherwise take the part for the whole answer.
//
// All operations that are there at once are one write, so a slow client gets fewer and larger ones.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, rq *request, to encoder) error {
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, string(to.Ping(nil)))
	defer st.Close()
	buf := to.Start(nil)
	err := st.Write(buf)
	if err == nil {
		var appender answer.Appender
		buf = buf[:0]
		err = follow.Answer{
			Op: func(a *answer.Answer, op *answer.Op) error {
				buf = spell(buf, to, appender.Next(a, op), rq.silent)
				switch op.Type {
				case event.TurnWait:
					buf = spell(buf, to, []answer.Piece{question(op.Body.Request)}, rq.silent)
				case event.TurnEnd:
					buf = finish(buf, to, a.Turn(), appender.IsContradicted())
				}
				return nil
			},
			Flush: func() error {
				defer func() { buf = buf[:0] }()
				return st.Write(buf)
			},
			Tick: st.Tick, Ticks: st.Ticks,
		}.Follow(r.Context(), s.gw, p, conversation, turn, -1)
	}

	if st.Err != nil || err == nil || r.Context().Err() != nil && !server.Restarting(err) && !isExpired(err) {
		return nil // the client is disconnected, or the stream has ended without an error
	}
	_ = st.Write(to.fail(nil, describe(err))) // best effort
	if server.Restarting(err) || isExpired(err) {
		return nil
	}
	return err
}

// spell appends pieces to a stream. With silent, it omits the reasoning.
func spell(b []byte, to encoder, pieces []answer.Piece, silent bool) []byte {
	for _, p := range pieces {
		if !p.IsReasoning {
			b = to.Text(b, p.Text)
		} else if !silent {
			b = to.Reasoning(b, p.Text)
		}
	}
	return b
}

// question returns a request of a turn as reasoning. A client of these APIs can then see why the answer pauses, and it is not part of the
// answer.
func question(r *event.Request) answer.Piece {
	text := cmp.Or(r.Prompt, strings.TrimSpace("The agent waits for "+string(r.Kind)+" "+r.Tool))
	return answer.Piece{IsReasoning: true, Text: "\n\n[waiting for a person] " + text + "\n\n"}
}

// finish ends the stream of an ended turn. isContradicted reports that its text isn't the one that was sent.
func finish(b []byte, to encoder, turn *transcript.Turn, isContradicted bool) []byte {
	switch e := failed(turn); {
	case e != nil:
		return to.fail(b, e)
	case isContradicted:
		return to.fail(b, errReplaced)
	}
	return to.End(b, turn.Reason, turn.Usage)
}

// merged joins neighbouring pieces of the same kind. With silent, it omits the reasoning.
//
// Without it, an answer of many parts would have as many content blocks, which some clients show as
// separate paragraphs.
func merged(pieces []answer.Piece, silent bool) []answer.Piece {
	var result []answer.Piece
	for _, p := range pieces {
		if n := len(result); p.IsReasoning && silent {
			continue
		} else if n > 0 && result[n-1].IsReasoning == p.IsReasoning {
			result[n-1].Text += p.Text
		} else {
			result = append(result, p)
		}
	}
	return result
}
