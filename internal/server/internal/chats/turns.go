// The turns of a chat.

package chats

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// Unfinished returns the turns of a conversation that have not ended, the oldest first, without those inside other turns.
//
// Nested turns are left out because the turn that contains them is stopped and answered instead.
func (c Chats) Unfinished(ctx context.Context, p gateway.Principal, conversation string) (turns []string, err error) {
	err = c.Gateway.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		turns = nil
		for _, turn := range t.Turns {
			if turn.Unfinished() && turn.Independent() {
				turns = append(turns, turn.ID)
			}
		}
		return true
	})
	return turns, err
}

// Stop stops the unfinished turns of a conversation, and returns them. Those in the queue are stopped first, so that none of them starts meanwhile.
func (c Chats) Stop(ctx context.Context, p gateway.Principal, conversation string) (turns []string, err error) {
	if turns, err = c.Unfinished(ctx, p, conversation); err != nil {
		return nil, err
	}
	for _, turn := range slices.Backward(turns) {
		if _, err := server.Do(ctx, c.Gateway, p, conversation, gateway.Command{Type: gateway.CommandStop, Turn: turn}); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// StopsTurn reads the parameter on_disconnect: whether the client wants its turn to be stopped when it disconnects.
func StopsTurn(parameter string) (bool, error) {
	switch parameter {
	case "", "continue":
		return false, nil
	case "stop":
		return true, nil
	default:
		return false, server.Invalid("unknown value %q of on_disconnect; use continue or stop", parameter)
	}
}

// maxStops limits how often a truncate is tried. Between two attempts, the turns that were unfinished are stopped. A conversation in which
// programs begin turns all the time must not keep a request forever.
const maxStops = 5

// Truncate removes the messages after one. Turns that still answer them are stopped: the user has replaced their question. The files of the
// removed messages are retained for a while, because one of the messages is sent again.
func (c Chats) Truncate(ctx context.Context, p gateway.Principal, conversation, after string) error {
	for range maxStops {
		_, err := server.Do(ctx, c.Gateway, p, conversation, gateway.Command{Type: gateway.CommandTruncate, After: after, KeepFiles: true})
		if rejection, ok := errors.AsType[*gateway.Rejection](err); !ok || rejection.Reason != gateway.ReasonUnfinished {
			return err
		}
		if _, err := c.Stop(ctx, p, conversation); err != nil {
			return err
		}
	}
	return server.Errorf(http.StatusConflict, gateway.ReasonUnfinished, "other answers begin in this chat all the time; try again")
}

// IsOpen reports whether a request of a turn waits for its answer.
//
// The turn is read as it is now. The answer that is streamed may be behind, above all in a replay, and then shows requests as open that were
// answered since. This is called only for requests, which are rare.
func (c Chats) IsOpen(ctx context.Context, p gateway.Principal, turn, request string) (bool, error) {
	_, t, err := c.Gateway.Turn(ctx, p, gateway.ActionRead, turn)
	if err != nil {
		return false, err
	}
	for _, r := range t.Requests {
		if r.ID == request {
			return true, nil
		}
	}
	return false, nil
}

// LastTurn returns the newest turn that is not inside another one, or nil.
func LastTurn(t *transcript.Transcript) *transcript.Turn {
	for _, turn := range slices.Backward(t.Turns) {
		if turn.Independent() {
			return turn
		}
	}
	return nil
}

// FailureText says why a turn ended without an answer: in the agent's words if it has some. A turn that a restart has ended gets the given text.
func FailureText(turn *transcript.Turn, interrupted string) string {
	switch {
	case turn.Error != nil && turn.Error.Message != "":
		return turn.Error.Message
	case turn.Outcome == event.Interrupted:
		return interrupted
	}
	return "The agent could not answer."
}
