// The turns of prompts: how they end, and how they are stopped.

package acp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

// turnOf returns the turn of a prompt that was sent.
func (s *session) turnOf(p *prompt) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.turn
}

// cancel cancels the prompts that are in progress. Without one, the turns that run belong to other clients or to an earlier session of the
// editor, and the work stops them: its user sees one and wants it to end.
func (s *session) cancel() jsonrpc.Work {
	if len(s.cancelPrompts()) > 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := slices.Clone(s.unfinished)
	return func(ctx context.Context) (any, error) {
		// The newest first, so that stopping one doesn't start another.
		for _, turn := range slices.Backward(turns) {
			s.stop(ctx, turn)
		}
		return nil, nil
	}
}

// stop stops a turn, as soon as the gateway can be reached. If the turn has ended already, it does nothing.
func (s *session) stop(ctx context.Context, turn string) {
	for {
		_, err := s.host.Client.Stop(ctx, s.id, turn)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case !isTemporary(err):
			s.host.Log.Warn("turn not stopped", "conversation", s.id, "turn", turn, "error", err)
			return
		}
		if pause(ctx) != nil {
			return
		}
	}
}

// resolve gives a prompt its result if the transcript has it. The session's mutex is held.
//
// The turn is found by the message and not by the acknowledgement: a fast turn may have ended before the gateway's response to the command
// arrives, and then there may be no later update. A message that steers a running turn has that turn, and its prompt ends with it.
func (s *session) resolve(t *transcript.Transcript, p *prompt) {
	if p.message != "" {
		m := t.Message(p.message)
		switch {
		case m != nil && m.State == event.MessageRejected:
			p.end(promptResult{}, jsonrpc.Errorf(jsonrpc.InternalError, "the message was not answered: %s", cmp.Or(m.StateReason, "rejected")))
		case m != nil && m.StateTurn != "":
			p.turn = m.StateTurn
		case m == nil && (p.seq == 0 || t.Seq < p.seq):
			return // the message is on its way
		}
	}
	if p.turn == "" {
		return
	}
	turn := t.Turn(p.turn)
	switch {
	case turn == nil:
		s.lookUp(p, true) // it was removed, or has ended long ago
	case !turn.Unfinished():
		p.end(resultOf(turn))
	case s.question != nil && s.question.turn == p.turn && s.question.key() != p.answeredKey:
		p.end(promptResult{"end_turn"}, nil) // the next prompt answers it
	}
}

// lookUp requests the turn of a prompt from the gateway, because there may be no further update. The session's mutex is held.
//
// If isGone is false, the transcript may be behind the gateway, and then an update will tell: the prompt must not have its result before the text.
func (s *session) lookUp(p *prompt, isGone bool) {
	if p.isLookedUp {
		return
	}
	p.isLookedUp = true
	id := p.turn
	s.host.conn.Go(func(ctx context.Context) {
		_, turn, err := s.host.Client.Turn(ctx, id)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.isLookedUp = false // the next update may look it up again
		e, isRefused := errors.AsType[*leat.Error](err)
		switch {
		case isRefused && e.Status == http.StatusNotFound:
			p.end(promptResult{}, jsonrpc.Errorf(jsonrpc.InternalError, "the answer was removed from the conversation"))
		case err != nil:
			s.host.Log.Warn("turn not found", "turn", id, "error", err)
		case !turn.Unfinished() && (isGone || s.seq >= turn.EndSeq):
			p.end(resultOf(&turn))
		}
	})
}

// resultOf returns how a turn has ended.
//
// The protocol also has the reason refusal, which isn't used: editors then remove the prompt and what follows from their session, but the
// conversation keeps both. A turn that failed is an error, because editors show no reason for an end_turn.
func resultOf(turn *transcript.Turn) (promptResult, error) {
	// Agents that fail without a message have their reason in the gateway's log only.
	message := "the agent could not answer"
	switch turn.Outcome {
	case event.Completed:
		if turn.Reason == event.ReasonLength {
			return promptResult{"max_tokens"}, nil
		}
		return promptResult{"end_turn"}, nil
	case event.Cancelled:
		return promptResult{"cancelled"}, nil
	case event.Interrupted:
		message = "the answer was interrupted by a restart of the gateway; the text so far is saved"
	}
	failure := jsonrpc.Errorf(jsonrpc.InternalError, "%s", message)
	if turn.Error != nil && turn.Error.Message != "" {
		failure.Message, failure.Data = turn.Error.Message, turn.Error
	}
	return promptResult{}, failure
}

// abandon has a message stopped that may have reached the gateway, although its prompt was canceled before the gateway acknowledged it.
//
// Only the transcript shows whether the gateway got it: the response was lost, or the gateway can't be reached yet.
func (s *session) abandon(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned[message] = true
}

// stopAbandoned stops the turns of abandoned messages. The session's mutex is held.
func (s *session) stopAbandoned(t *transcript.Transcript) {
	for message := range s.abandoned {
		if m := t.Message(message); m != nil && m.StateTurn != "" {
			delete(s.abandoned, message)
			turn := m.StateTurn
			s.host.conn.Go(func(ctx context.Context) { s.stop(ctx, turn) })
		}
	}
}
