// The life of a prompt: it is sent, its turn is awaited, and it may be canceled.

package acp

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
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
	// answeredKey is the key of the question that the prompt answers. The transcript may still have it for a while.
	answeredKey string
	// seq is that of the acknowledgement: a transcript up to it has the message. It is 0 before.
	seq        int64
	isLookedUp bool

	// canceled is closed when the editor cancels the prompt by session/cancel. Giving up the request ends its context instead.
	canceled chan struct{}
	// result gets the first result. It is buffered, so that the goroutine that finds the result never waits for the prompt.
	result chan outcome
	// response is closed when the prompt has its result or an error, and the response is next.
	response chan struct{}
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

// begin registers a prompt. It is called in the order of the messages and not by the work of the request, so that a cancel that follows it finds it.
func (s *session) begin() *prompt {
	p := &prompt{canceled: make(chan struct{}), result: make(chan outcome, 1), response: make(chan struct{})}
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
		close(p.response)
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
		return nil, s.host.fail(err)
	}
	return s.await(ctx, p)
}

// failureIfEnded returns why the session has ended, or nil.
func (s *session) failureIfEnded() error {
	select {
	case <-s.followDone:
		return s.failure()
	default:
		return nil
	}
}

// promptAnswer answers the open question with a prompt.
//
// The prompt then ends with the turn that has asked, or with its next question. Pictures can't be part of an answer and are ignored.
func (s *session) promptAnswer(ctx context.Context, p *prompt, q *question, content []block) error {
	text, err := textOf(content)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.question, p.turn, p.answeredKey = nil, q.turn, q.key()
	s.mu.Unlock()
	if err := s.answer(ctx, *q, "", text); err != nil {
		return err
	}
	// The turn may have ended before the prompt was known to belong to it.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookUp(p, false)
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
	s.ownMessages[message.ID], p.message = true, message.ID
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
		title := s.host.Title(text)
		if _, err := s.host.Client.Do(ctx, s.id, leat.Command{Type: "update", Title: &title}); err != nil {
			s.host.Log.Warn("conversation has no title", "conversation", s.id, "error", err)
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
		ack, err := s.host.Client.Do(ctx, s.id, command)
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
	connection := s.host.conn.Context()
	select {
	case o := <-p.result:
		return o.result, o.err
	case <-p.canceled:
	case <-ctx.Done():
		if connection.Err() != nil {
			return nil, jsonrpc.ErrClosed
		}
	}
	stopping, endStopping := context.WithCancel(connection)
	defer endStopping()
	turn := s.turnOf(p)
	s.host.conn.Go(func(context.Context) { s.stop(stopping, turn) })
	select {
	case <-p.result:
		return promptResult{"cancelled"}, nil // the protocol demands it, however the turn has ended
	case <-connection.Done():
		return nil, jsonrpc.ErrClosed
	}
}
