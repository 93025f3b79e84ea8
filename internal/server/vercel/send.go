// Messages, edits, repeated answers, and the answers of people to agents.

package vercel

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// send adds the user's message of a request, unless the conversation has it, and finds the turn that answers it.
//
// Each message gets a separate turn, even if the running one could take it: the SDK expects one answer for each request.
func (s *surface) send(ctx context.Context, p gateway.Principal, rq *request, to *target) error {
	if rq.last.Role != "user" {
		return server.Invalid("the last message has the role %q; it must be the user's, or the assistant's with an answer to it", rq.last.Role)
	}
	message, err := messageOf(&rq.last)
	if err != nil {
		return err
	}
	if to.conversation, err = s.chats.Open(ctx, p, rq.ID, rq.Agent); err != nil {
		return err
	}
	original, err := s.chats.Message(ctx, p, to.conversation, message.ID)
	if err != nil {
		return err
	}
	// The SDK has removed what follows the message from its own list. So has the conversation then, for everyone who reads it.
	isEdit := rq.Trigger == triggerSubmit && rq.MessageID != "" && rq.MessageID == message.ID
	switch {
	case original == nil:
	case rq.Trigger == triggerRegenerate:
		message = original.CommandMessage
		err = s.chats.Truncate(ctx, p, to.conversation, original.Before)
	case isEdit:
		err = s.chats.Truncate(ctx, p, to.conversation, original.Before)
	default:
		to.turn, err = turnFor(original, &message)
		return err
	}
	if err != nil {
		return err
	}
	ack, err := server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandSend, Agent: rq.Agent, Message: &message, Queue: true})
	if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonConflict {
		// The same message may have arrived twice at the same time.
		if original, lookErr := s.chats.Message(ctx, p, to.conversation, message.ID); original != nil || lookErr != nil {
			if lookErr == nil {
				to.turn, lookErr = turnFor(original, &message)
			}
			return lookErr
		}
	}
	to.turn = ack.Turn
	return err
}

// turnFor returns the turn that answers a message, if the repetition has the same content. The client has then lost the response.
func turnFor(original *chats.Message, repetition *gateway.CommandMessage) (string, error) {
	if original.Turn == "" || original.Text != repetition.Text || len(original.Parts) != len(repetition.Parts) {
		return "", server.Errorf(http.StatusConflict, gateway.ReasonConflict, "another message of this chat has the same id")
	}
	return original.Turn, nil
}

// answer passes on the answers in the last message, which is the agent's, and finds the place where the response to it continues.
//
// If another client has answered a request meanwhile, its answer counts, and the response continues as for any other. The client's own answer
// is dropped without an error, because the user sees from the rest of the message which one counts.
func (s *surface) answer(ctx context.Context, p gateway.Principal, rq *request, to *target) error {
	id, isFound, err := s.chats.Find(ctx, p, rq.ID)
	if err != nil {
		return err
	}
	noTurn := server.Errorf(http.StatusNotFound, server.ReasonNotFound, "the chat has no such answer to continue; send a new message")
	if !isFound {
		return noTurn
	}
	conversation, turn, err := s.gw.Turn(ctx, p, gateway.ActionRead, rq.last.ID)
	switch {
	case errors.Is(err, gateway.ErrNotFound) || err == nil && conversation != id:
		return noTurn
	case err != nil:
		return err
	}
	hasRequest := map[string]bool{}
	to.calls = map[string]bool{}
	for i := range rq.last.Parts {
		part := &rq.last.Parts[i]
		hasRequest[part.ToolCallID], hasRequest[part.Approval.ID] = true, true
		to.calls[part.ToolCallID] = true
	}
	delete(hasRequest, "")
	to.conversation, to.turn = id, turn.ID
	// The place is found before the answers are given: the agent may end the turn, and the log may then be compacted.
	if to.after, err = s.numberOf(ctx, p, id, turn.ID, hasRequest); err != nil {
		return err
	}
	if to.after < 0 {
		return server.Invalid("the last message answers no question of the agent; send a new message")
	}
	for _, request := range turn.Requests {
		c, ok := answerTo(&request.Request, rq.last.Parts)
		if !ok {
			continue
		}
		c.Type, c.Turn, c.Request = gateway.CommandAnswer, turn.ID, request.ID
		_, err := server.Do(ctx, s.gw, p, id, c)
		if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonAnswered {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerTo returns the answer to a request in the parts of a message.
func answerTo(r *event.Request, parts []uiPart) (c gateway.Command, ok bool) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Approval.ID == r.ID && p.Approval.Approved != nil:
			c.Decision, c.Text = event.Deny, p.Approval.Reason
			if *p.Approval.Approved {
				c.Decision = event.Approve
			}
			return c, true
		case p.ToolCallID != r.ID:
		case p.State == "output-available":
			return chats.OutputAnswer(r, textOf(p.Output)), true
		case p.State == "output-error" && r.Kind == event.RequestApproval:
			return gateway.Command{Decision: event.Deny, Text: p.ErrorText}, true
		case p.State == "output-error":
			return gateway.Command{Text: chats.ErrorAnswer(p.ErrorText)}, true
		}
	}
	return c, false
}
