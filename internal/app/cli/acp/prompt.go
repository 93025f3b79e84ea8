// The life of a prompt: it is sent, its turn is awaited, and it may be canceled.

package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

const (
	// sendLimit is how long a prompt is sent again while the gateway can't be reached. A restart takes less.
	sendLimit = 2 * time.Minute
	// retryWait is the pause between two attempts, in addition to those of the client.
	retryWait = time.Second
)

// prompt is a session/prompt that hasn't been answered. The session's mutex guards it.
type prompt struct {
	message string // id; empty if the prompt answers a question
	turn    string // that answers the message, when it is known
	// answered is the key of the question that the prompt answers. The transcript may still have it for a while.
	answered string
	// seq is that of the acknowledgement: a transcript up to it has the message. It is 0 before.
	seq        int64
	isLookedUp bool

	canceled chan struct{} // closed when the editor cancels it
	result   chan outcome  // gets the result; buffered
}

// outcome is how a prompt has ended.
type outcome struct {
	result promptResult
	err    error
}

// end gives a prompt its result. Later ones don't count.
func (p *prompt) end(result promptResult, err error) {
	select {
	case p.result <- outcome{result, err}:
	default:
	}
}

func (p *prompt) isCanceled() bool {
	select {
	case <-p.canceled:
		return true
	default:
		return false
	}
}

// begin registers a prompt, so that a cancel that follows it finds it.
func (s *session) begin() *prompt {
	p := &prompt{canceled: make(chan struct{}), result: make(chan outcome, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts[p] = true
	return p
}

// prompt sends a prompt, or answers a question with it, and waits until its turn has ended or asks for a text.
func (s *session) prompt(ctx context.Context, p *prompt, content []block) (any, error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.prompts, p)
	}()
	if err := s.failureIfEnded(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	q := s.question
	s.mu.Unlock()
	var err error
	if q != nil {
		err = s.promptAnswer(ctx, p, q, content)
	} else {
		err = s.promptMessage(ctx, p, content)
	}
	if err != nil {
		if p.isCanceled() {
			if isTemporary(err) && p.message != "" {
				s.abandon(p.message)
			}
			return promptResult{"cancelled"}, nil
		}
		return nil, s.agent.fail(err)
	}
	return s.await(ctx, p)
}

// failureIfEnded returns why the session has ended, or nil.
func (s *session) failureIfEnded() error {
	select {
	case <-s.ended:
		return s.failure()
	default:
		return nil
	}
}

// promptAnswer answers the open question with a prompt.
func (s *session) promptAnswer(ctx context.Context, p *prompt, q *question, content []block) error {
	text, err := textOf(content)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.question, p.turn, p.answered = nil, q.turn, q.key()
	s.mu.Unlock()
	if err := s.answer(ctx, *q, "", text); err != nil {
		return err
	}
	// The turn may have ended before the prompt was known to belong to it.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookUp(p)
	return nil
}

// promptMessage sends a prompt as a message. Its id is known before the gateway answers, so that the transcript can be ahead of the answer.
func (s *session) promptMessage(ctx context.Context, p *prompt, content []block) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("id of the message: %w", err)
	}
	message := leat.Message{ID: id.String(), Source: "acp"}
	if message.Parts, err = s.parts(ctx, content); err != nil {
		return err
	}
	s.mu.Lock()
	s.own[message.ID], p.message = true, message.ID
	command := leat.Command{Type: "send", Key: message.ID, Message: &message}
	if s.isChosen {
		command.Agent = s.current
	}
	isUntitled := s.isUntitled
	s.isUntitled = false
	s.mu.Unlock()
	ack, err := s.send(ctx, p, command)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.turn, p.seq = ack.Turn, ack.Seq
	s.mu.Unlock()
	if text := firstText(message.Parts); isUntitled && text != "" {
		title := s.agent.Title(text)
		if _, err := s.agent.Client.Do(ctx, s.id, leat.Command{Type: "update", Title: &title}); err != nil {
			s.agent.Log.Warn("conversation has no title", "conversation", s.id, "error", err)
		}
	}
	return nil
}

// firstText returns the first text of a message.
func firstText(parts []event.Part) string {
	for _, p := range parts {
		if p.Kind == event.KindText {
			return p.Text
		}
	}
	return ""
}

// send sends a command until the gateway acknowledges or refuses it, so that a restart of the gateway doesn't lose a prompt. The key makes it
// take effect once.
func (s *session) send(ctx context.Context, p *prompt, command leat.Command) (leat.Ack, error) {
	limit := time.Now().Add(sendLimit)
	for {
		ack, err := s.agent.Client.Do(ctx, s.id, command)
		if err == nil || !isTemporary(err) || ctx.Err() != nil || p.isCanceled() || time.Now().After(limit) {
			return ack, err
		}
		if pause(ctx) != nil {
			return ack, err
		}
	}
}

// pause waits before the next attempt.
func pause(ctx context.Context) error {
	t := time.NewTimer(retryWait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits for the result of a prompt. When the editor cancels it, by session/cancel or by giving up the request, the turn is stopped, and
// the result follows when the turn has ended. The end of the connection stops nothing.
func (s *session) await(ctx context.Context, p *prompt) (any, error) {
	connection := s.agent.conn.Context()
	select {
	case o := <-p.result:
		return o.result, o.err
	case <-p.canceled:
	case <-ctx.Done():
		if connection.Err() != nil {
			return nil, jsonrpc.ErrClosed
		}
	}
	stopping, done := context.WithCancel(connection)
	defer done()
	turn := s.turnOf(p)
	s.agent.conn.Go(func(context.Context) { s.stop(stopping, turn) })
	select {
	case <-p.result:
		return promptResult{"cancelled"}, nil // the protocol demands it, however the turn has ended
	case <-connection.Done():
		return nil, jsonrpc.ErrClosed
	}
}

// turnOf returns the turn of a prompt that was sent.
func (s *session) turnOf(p *prompt) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.turn
}

// cancel cancels the prompts that are in progress. Without one, the turns that run belong to other clients or to an earlier session of the
// editor, and the work stops them: its user sees one and wants it to end.
func (s *session) cancel() jsonrpc.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.prompts {
		if !p.isCanceled() {
			close(p.canceled)
		}
	}
	if len(s.prompts) > 0 {
		return nil
	}
	turns := slices.Clone(s.running)
	return func(ctx context.Context) (any, error) {
		// The newest first, so that stopping one doesn't start another.
		for _, turn := range slices.Backward(turns) {
			s.stop(ctx, turn)
		}
		return nil, nil
	}
}

// stop stops a turn, as soon as the gateway can be reached. A turn that has ended already is no error.
func (s *session) stop(ctx context.Context, turn string) {
	for {
		_, err := s.agent.Client.Stop(ctx, s.id, turn)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case !isTemporary(err):
			s.agent.Log.Warn("turn not stopped", "conversation", s.id, "turn", turn, "error", err)
			return
		}
		if pause(ctx) != nil {
			return
		}
	}
}

// resolve gives a prompt its result if the transcript has it. The session's mutex is held.
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
		s.lookUp(p) // it was removed, or has ended long ago
	case !turn.Unfinished():
		p.end(resultOf(turn))
	case s.question != nil && s.question.turn == p.turn && s.question.key() != p.answered:
		p.end(promptResult{"end_turn"}, nil) // the next prompt answers it
	}
}

// lookUp requests the turn of a prompt from the gateway, because no update may tell of it. The session's mutex is held.
func (s *session) lookUp(p *prompt) {
	if p.isLookedUp {
		return
	}
	p.isLookedUp = true
	id := p.turn
	s.agent.conn.Go(func(ctx context.Context) {
		_, turn, err := s.agent.Client.Turn(ctx, id)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.isLookedUp = false // the next update may look it up again
		e, isRefused := errors.AsType[*leat.Error](err)
		switch {
		case isRefused && e.Status == http.StatusNotFound:
			p.end(promptResult{}, jsonrpc.Errorf(jsonrpc.InternalError, "the answer was removed from the conversation"))
		case err != nil:
			s.agent.Log.Warn("turn not found", "turn", id, "error", err)
		case !turn.Unfinished():
			p.end(resultOf(&turn))
		}
	})
}

// resultOf returns how a turn has ended.
func resultOf(turn *transcript.Turn) (promptResult, error) {
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
			s.agent.conn.Go(func(ctx context.Context) { s.stop(ctx, turn) })
		}
	}
}
