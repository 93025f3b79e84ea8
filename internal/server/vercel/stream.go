// Streams: the responses to messages and to resumes.

package vercel

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

// errPaused ends the response of a turn that waits.
var errPaused = errors.New("vercel: the turn waits")

// target is an answer to stream.
type target struct {
	conversation, turn string
	sdk                sdk
	// after is the number of the last operation that the client has, and calls are the ids of the calls in its message. A response that begins a
	// message, or replaces it, has -1 and nil.
	after int64
	calls map[string]bool
	// stopsTurn says that the turn is stopped when the client disconnects.
	stopsTurn bool
}

// stream streams an answer until the turn ends or waits for a person. A turn that waits ends its response only if it isn't answered yet.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target) error {
	w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	w.Header().Set("Leat-Conversation", to.conversation)
	w.Header().Set("Leat-Turn", to.turn)
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, keepAlive)
	defer st.Close()
	if st.Head() {
		return nil
	}
	chunks := newWriter(to.sdk, to.turn, to.calls, func(request string) (bool, error) { return s.chats.IsOpen(r.Context(), p, to.turn, request) })
	chunks.start()
	err := st.Write(chunks.take())
	if err == nil {
		var current *answer.Answer
		err = follow.Answer{
			Op: func(a *answer.Answer, op *answer.Op) error {
				current = a
				return chunks.apply(a, op)
			},
			Flush: func() error {
				if current == nil {
					return nil
				}
				isPaused, err := chunks.flush(current)
				if err == nil {
					err = st.Write(chunks.take())
				}
				if err == nil && isPaused {
					err = errPaused
				}
				return err
			},
			Tick: st.Tick, Ticks: st.Ticks,
		}.Follow(r.Context(), s.gw, p, to.conversation, to.turn, to.after)
	}
	return s.finish(r, p, to, chunks, st, err)
}

// finish handles the end of a stream.
//
// If the gateway stops, the connection is aborted: a clean end would look like a complete answer, and an error would keep the page from
// resuming.
func (s *surface) finish(r *http.Request, p gateway.Principal, to target, chunks *writer, st *follow.Stream, err error) error {
	cause := context.Cause(r.Context())
	switch {
	case err == nil, errors.Is(err, errPaused):
		return nil
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler)
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, to)
	case cause != nil: // the session has ended
		err = cause
	}
	isExpired := errors.Is(err, server.ErrExpired)
	text := chats.Sentence(server.Describe(err).Message)
	switch {
	case isExpired:
		text = textExpired
	case errors.Is(err, follow.ErrNoTurn):
		text = textRemoved
	}
	chunks.take()
	chunks.fail(text)
	_ = st.Write(chunks.take()) // best effort
	if isExpired || errors.Is(err, follow.ErrNoTurn) {
		return nil
	}
	return err
}

// disconnected stops the turn of a client that has disconnected, if the client asked for it.
func (s *surface) disconnected(ctx context.Context, p gateway.Principal, to target) error {
	if !to.stopsTurn {
		return nil
	}
	_, err := server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandStop, Turn: to.turn})
	if err != nil {
		return fmt.Errorf("stop turn %s of a disconnected client: %w", to.turn, err)
	}
	return nil
}

// errFound ends a reading that has found what it looked for.
var errFound = errors.New("vercel: found")

// numberOf returns the number of the last request of a turn that a client has, or -1. The client's response ended there.
//
// It reads the answer up to the head of the log, and not to its end, which a turn that waits doesn't have yet.
func (s *surface) numberOf(ctx context.Context, p gateway.Principal, conversation, turn string, hasRequest map[string]bool) (int64, error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if err != nil {
		return 0, err
	}
	number := int64(-1)
	var current *answer.Answer
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			if op.Type == event.TurnWait && hasRequest[op.Get().Request.ID] {
				number = op.Number
			}
			return nil
		},
		Flush: func() error {
			if current != nil && current.Upto() >= c.Head {
				return errFound
			}
			return nil
		},
	}.Follow(ctx, s.gw, p, conversation, turn, -1)
	if err != nil && !errors.Is(err, errFound) {
		return 0, err
	}
	return number, nil
}
