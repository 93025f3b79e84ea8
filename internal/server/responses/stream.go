// Reading responses: as a stream, and as a whole.
//
// Both follow the turn with the same writer. A whole response only leaves the events out. So what a client polls is what another one has
// streamed, also for a turn that is older than the memory of the gateway.

package responses

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// keepAlive is a comment, which clients skip.
const keepAlive = ":\n\n"

// stream streams a response to its end. The client has the events up to a sequence number, or none if it is -1.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target, o *object, after int64) error {
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, keepAlive)
	defer st.Close()
	if st.Head() {
		return nil
	}
	// The writer outlives single reads of the log, and has all state that the next operations depend on.
	events := newWriter(o, to.from, after)
	err := s.follow(r.Context(), p, to, events, after, func(*answer.Answer) error { return st.Write(events.take()) }, st.Tick, st.Ticks)
	// The order matters: when the server stops, the context has ended too, and when a client disconnects, the reading fails for that reason.
	switch cause := context.Cause(r.Context()); {
	case err == nil:
		return nil
	case server.Restarting(err), server.Restarting(cause):
		err = server.ErrShutdown
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return nil // the turn continues
	case cause != nil: // the session has ended
		err = cause
	}
	// A stream without an end looks like an answer to some clients, so it ends with an error. Its number is that of the last event, after
	// which the client resumes.
	events.take() // what was not written may be incomplete
	e := describe(err)
	kind, code := models.OpenAIType(e), models.OpenAICode(e)
	frame, encodeErr := appendFrame(nil, "error", errorFrame{"error", max(events.lastNumber, 0), code, e.Message, nil, errorBody{kind, code, e.Message, nil}})
	_ = st.Write(frame) // best effort
	if errors.Is(err, server.ErrShutdown) || errors.Is(err, server.ErrExpired) || errors.Is(err, follow.ErrNoTurn) {
		return encodeErr
	}
	return errors.Join(err, encodeErr)
}

// follow passes the operations of a response to its writer until the response ends, also because the turn waits. flush is called after operations
// that were there at once.
func (s *surface) follow(ctx context.Context, p gateway.Principal, to target, events *writer, after int64, flush func(*answer.Answer) error, tick func() error, ticks <-chan time.Time) error {
	var current *answer.Answer
	// The client has at least one event of the operation with its number. The operation counts as received, so that no later append is merged
	// with it, and the writer sends the rest of its events.
	if after >= 0 {
		after /= stride
	}
	err := follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			events.apply(a, op)
			return events.err
		},
		Flush: func() error {
			if current == nil {
				return nil
			}
			// The log says that a response has ended only when the answer follows. Until then the turn's state says it.
			isPaused, err := s.isPaused(ctx, p, events, current)
			if err != nil {
				return err
			}
			if isPaused {
				events.pause(current)
			}
			if err := errors.Join(events.err, flush(current)); err != nil {
				return err
			}
			if events.hasEnded {
				return errPaused
			}
			return nil
		},
		Tick: tick, Ticks: ticks, IsExact: true,
	}.Follow(ctx, s.gw, p, to.conversation, to.turn, after)
	if errors.Is(err, errPaused) {
		return nil
	}
	return err
}

// isPaused reports whether a turn waits now. An answer that is behind also has requests that were answered since.
func (s *surface) isPaused(ctx context.Context, p gateway.Principal, events *writer, a *answer.Answer) (bool, error) {
	if !events.hasBegun || events.hasEnded {
		return false, nil
	}
	for _, r := range events.open {
		if isOpen, err := s.chats.IsOpen(ctx, p, a.Turn().ID, r.ID); isOpen || err != nil {
			return isOpen, err
		}
	}
	return false, nil
}

// complete completes the object of a response: as it is now, or as it is when it ends.
func (s *surface) complete(ctx context.Context, p gateway.Principal, to target, o *object, isNow bool) error {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, to.conversation)
	if err != nil {
		return err
	}
	events := newWriter(o, to.from, maxNumber*stride) // no events are needed
	err = s.follow(ctx, p, to, events, -1, func(a *answer.Answer) error {
		if isNow && !events.hasEnded && a.Upto() >= c.Head {
			o.Output = events.outputOf(a)
			return errCurrent
		}
		return nil
	}, nil, nil)
	if err == nil || errors.Is(err, errCurrent) {
		if !events.hasBegun {
			return errNoResponse
		}
		return nil
	}
	return err
}

// findAnswers returns the number of the last answer to one of some requests, or 0.
func (s *surface) findAnswers(ctx context.Context, p gateway.Principal, conversation, turn string, requests map[string]bool) (from int64, err error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if err != nil {
		return 0, err
	}
	var current *answer.Answer
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			if op.Type == event.TurnResume && requests[op.Body.Answer.ID] {
				from = op.Number
			}
			return nil
		},
		Flush: func() error {
			if current != nil && current.Upto() >= c.Head {
				return errCurrent
			}
			return nil
		},
	}.Follow(ctx, s.gw, p, conversation, turn, -1)
	if errors.Is(err, errCurrent) {
		err = nil
	}
	return from, err
}
