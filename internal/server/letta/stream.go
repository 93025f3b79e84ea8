// Responses with a run: as a stream, or as a whole.

package letta

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
	"github.com/leat-dev/leat/transcript"
)

// errPaused ends the response of a turn that waits.
var errPaused = errors.New("letta: the turn waits")

// stream streams a run until the turn ends or waits for a person.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target) error {
	w.Header().Set("Leat-Conversation", to.conversation)
	response, writeErr := s.srv.OpenStream(w, r, http.StatusOK, server.EventStream)
	metrics := s.viewers.Open()
	defer metrics.Close()
	ticker := time.NewTicker(response.Beat)
	defer ticker.Stop()
	write := func(b []byte) error {
		if writeErr == nil && len(b) > 0 {
			writeErr = response.Write(b)
			metrics.Frame(len(b))
		}
		return writeErr
	}
	frames := newWriter(runPrefix+to.turn, to.after)
	if to.hasPings {
		frames.ping()
	}
	err := write(frames.take())
	if err == nil {
		err = s.follow(r.Context(), p, &to, frames, write, func() error {
			if !to.hasPings {
				return write([]byte(": keep-alive\n\n"))
			}
			frames.ping()
			return write(frames.take())
		}, ticker.C)
	}
	cause := context.Cause(r.Context())
	switch {
	case err == nil, errors.Is(err, errPaused):
		return nil
	case server.Restarting(err), server.Restarting(cause):
		// A clean end would look like a complete answer. Letta Code resumes after a broken connection.
		panic(http.ErrAbortHandler)
	case writeErr != nil, errors.Is(cause, context.Canceled):
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
	_ = write(frames.take()) // best effort
	if isKnown {
		return nil
	}
	return err
}

// follow passes the frames of a run to write, until the turn ends or waits.
func (s *surface) follow(ctx context.Context, p gateway.Principal, to *target, frames *writer, write func([]byte) error, tick func() error, ticks <-chan time.Time) error {
	var current *answer.Answer
	err := follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			return frames.apply(a, op)
		},
		Flush: func() error {
			if current == nil {
				return nil
			}
			isOpen, err := s.isWaiting(ctx, p, current.Turn())
			if err == nil && isOpen {
				frames.pause(current.Turn())
			}
			err = errors.Join(err, frames.err, write(frames.take()))
			if err == nil && isOpen {
				return errPaused
			}
			return err
		},
		Tick: tick, Ticks: ticks,
	}.Follow(ctx, s.gw, p, to.conversation, to.turn, resumeNumber(to.after))
	if err != nil {
		return err
	}
	frames.end(current.Turn())
	return errors.Join(frames.err, write(frames.take()))
}

// isWaiting reports whether a turn waits for an answer that has not been given since it was read.
func (s *surface) isWaiting(ctx context.Context, p gateway.Principal, turn *transcript.Turn) (bool, error) {
	if turn == nil {
		return false, nil
	}
	for _, r := range turn.Requests {
		if isOpen, err := s.chats.IsOpen(ctx, p, turn.ID, r.ID); err != nil || isOpen {
			return isOpen, err
		}
	}
	return false, nil
}

// errFound ends a reading that has found what it looked for.
var errFound = errors.New("letta: found")

// lastRequest returns the seq_id of the last request of a turn. A response to its answer begins after it.
func (s *surface) lastRequest(ctx context.Context, p gateway.Principal, conversation, turn string) (seqID int64, err error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if err != nil {
		return 0, err
	}
	var current *answer.Answer
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			if op.Type == event.TurnWait {
				seqID = (op.Number+1)*spread + spread - 1
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
	return seqID, nil
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
	frames := newWriter(runPrefix+to.turn, to.after)
	err := s.follow(r.Context(), p, &to, frames, func([]byte) error { return nil }, nil, nil)
	if err != nil && !errors.Is(err, errPaused) {
		return err
	}
	isPaused := err != nil
	_, turn, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, to.turn)
	if err != nil {
		return err
	}
	messages, err := s.allMessages(r.Context(), p, to.conversation)
	if err != nil {
		return err
	}
	body := answerBody{Messages: []message{}, Stop: message{Type: typeStop, Stop: stopOf(&turn, isPaused)}, Usage: message{Type: typeUsage, usage: usageOf(&turn, runPrefix+to.turn)}}
	for i := range messages {
		if messages[i].Run == runPrefix+to.turn {
			body.Messages = append(body.Messages, messages[i])
		}
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
