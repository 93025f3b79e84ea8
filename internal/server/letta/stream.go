// Responses with a run: as a stream, or as a whole.

package letta

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// errPaused ends the response of a turn that waits.
var errPaused = errors.New("letta: the turn waits")

// stream streams a run until the turn ends or waits for a person.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target) error {
	w.Header().Set("Leat-Conversation", to.conversation)
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, ": keep-alive\n\n")
	defer st.Close()
	var frames *writer
	tick := func() error {
		if !to.hasPings {
			return st.Tick()
		}
		frames.ping()
		return st.Write(frames.take())
	}
	var err error
	for isFurther := true; err == nil && isFurther; {
		frames = newWriter(to.turn, to.after, to.isAsker)
		if to.hasPings {
			frames.ping()
			err = st.Write(frames.take())
		}
		if err == nil {
			isFurther, err = s.follow(r.Context(), p, &to, frames, st.Write, tick, st.Ticks)
		}
	}
	cause := context.Cause(r.Context())
	switch {
	case err == nil, errors.Is(err, errPaused):
		return nil
	case server.Restarting(err), server.Restarting(cause):
		// A clean end would look like a complete answer. Letta Code resumes after a broken connection.
		panic(http.ErrAbortHandler)
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return nil // a client that disconnects stops nothing
	case cause != nil: // the session has ended
		err = cause
	}
	frames.take()
	isKnown := true
	switch {
	case errors.Is(err, server.ErrExpired):
		frames.fail("llm_authentication", textExpired)
	case errors.Is(err, follow.ErrNoTurn):
		frames.fail("internal_error", textRemoved)
	default:
		frames.fail("internal_error", server.Describe(err).Message)
		isKnown = false
	}
	_ = st.Write(frames.take()) // best effort
	if isKnown {
		return nil
	}
	return err
}

// follow passes the frames of a run to write, until the turn ends or waits. At the end of a turn that another one follows in the response, it sets the
// target to that one and returns true.
//
// It pauses at a request that is open, and not after it. So the response to the answer continues exactly where this one ended, also if the agent continues while
// it waits, or asks a second question at once.
func (s *surface) follow(ctx context.Context, p gateway.Principal, to *target, frames *writer, write func([]byte) error, tick func() error, ticks <-chan time.Time) (isFurther bool, err error) {
	var current *answer.Answer
	send := func() error { return errors.Join(frames.err, write(frames.take())) }
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			if err := frames.apply(a, op); err != nil || op.Type != event.TurnWait {
				return err
			}
			isOpen, err := s.chats.IsOpen(ctx, p, to.turn, op.Get().Request.ID)
			if err != nil || !isOpen {
				return err
			}
			frames.pause(a.Turn())
			if err := send(); err != nil {
				return err
			}
			return errPaused
		},
		Flush: send,
		Tick:  tick, Ticks: ticks,
	}.Follow(ctx, s.gw, p, to.conversation, to.turn, resumeNumber(to.after))
	if err != nil {
		return false, err
	}
	if turn := current.Turn(); to.next != "" && (turn.Outcome == event.Completed || turn.Outcome == event.Cancelled) {
		to.turn, to.after, to.next = to.next, 0, ""
		return true, send()
	}
	frames.end(current.Turn())
	return false, send()
}

// answerBody is the response to a message without a stream. Both ends are messages as in a stream, which is how clients read them.
type answerBody struct {
	Messages []message `json:"messages"`
	Stop     message   `json:"stop_reason"`
	Usage    message   `json:"usage"`
}

// respond responds to a client that wants no stream. The connection is silent until then, for as long as the agent takes; clients of this kind have their
// own limit.
//
// It responds with all messages of a run, when the turn has ended or waits.
func (s *surface) respond(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target) error {
	var runs []string
	var err error
	for isFurther := true; err == nil && isFurther; {
		runs = append(runs, runPrefix+to.turn)
		isFurther, err = s.follow(r.Context(), p, &to, newWriter(to.turn, to.after, to.isAsker), func([]byte) error { return nil }, nil, nil)
	}
	isPaused := errors.Is(err, errPaused)
	if err != nil && !isPaused {
		return err
	}
	_, turn, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, to.turn)
	if err != nil {
		return err
	}
	messages, err := s.allMessages(r.Context(), p, to.conversation, to.isAsker)
	if err != nil {
		return err
	}
	body := answerBody{
		Messages: slices.DeleteFunc(messages, func(m message) bool { return !slices.Contains(runs, m.Run) }),
		Stop:     message{Type: typeStop, Stop: stopOf(&turn, isPaused)}, Usage: message{Type: typeUsage, usage: usageOf(&turn, runPrefix+to.turn)},
	}
	if body.Messages == nil {
		body.Messages = []message{}
	}
	return server.Respond(w, body, nil)
}

// stopOf returns the reason for the end of a run.
func stopOf(turn *transcript.Turn, isPaused bool) string {
	switch {
	case isPaused:
		return stopApproval
	case turn.Outcome == event.Cancelled:
		return stopCancelled
	case turn.Outcome != event.Completed:
		return stopError
	case turn.Reason == event.ReasonLength:
		return stopLength
	}
	return stopEnd
}
