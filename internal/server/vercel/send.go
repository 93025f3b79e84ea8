// Messages, edits, repeated answers, and the answers of people to agents.

package vercel

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
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
	if to.conversation, err = s.open(ctx, p, rq.ID, rq.Agent); err != nil {
		return err
	}
	original, err := s.lookUp(ctx, p, to.conversation, message.ID)
	if err != nil {
		return err
	}
	// The SDK has removed what follows the message from its own list. So has the conversation then, for everyone who reads it.
	isEdit := rq.Trigger == triggerSubmit && rq.MessageID != "" && rq.MessageID == message.ID
	switch {
	case original == nil:
	case rq.Trigger == triggerRegenerate:
		message = original.message
		err = s.truncate(ctx, p, to.conversation, original.before)
	case isEdit:
		err = s.truncate(ctx, p, to.conversation, original.before)
	default:
		to.turn, err = original.turnFor(&message)
		return err
	}
	if err != nil {
		return err
	}
	ack, err := server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandSend, Agent: rq.Agent, Message: &message, Queue: true})
	if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonConflict {
		// The same message may have arrived twice at the same time.
		if original, lookErr := s.lookUp(ctx, p, to.conversation, message.ID); original != nil || lookErr != nil {
			if lookErr == nil {
				to.turn, lookErr = original.turnFor(&message)
			}
			return lookErr
		}
	}
	to.turn = ack.Turn
	return err
}

// turnFor returns the turn that answers a message, if the repetition has the same content. The client has then lost the response.
func (k *knownMessage) turnFor(repetition *gateway.CommandMessage) (string, error) {
	if k.turn == "" || k.message.Text != repetition.Text || len(k.message.Parts) != len(repetition.Parts) {
		return "", server.Errorf(http.StatusConflict, gateway.ReasonConflict, "another message of this chat has the same id")
	}
	return k.turn, nil
}

// knownMessage is a user's message that the conversation has.
type knownMessage struct {
	message gateway.CommandMessage
	before  string // id of the message before it; may be empty
	turn    string // that answers it
}

// lookUp returns a user's message of a conversation, or nil.
//
// The message may be older than what is in memory, and so may the one before it. Then the whole log is read, which is rare: users edit and repeat
// what they see.
func (s *surface) lookUp(ctx context.Context, p gateway.Principal, conversation, id string) (original *knownMessage, err error) {
	if id == "" {
		return nil, nil
	}
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		original = nil
		for i, m := range t.Messages {
			if m.ID != id || m.Role != event.User {
				continue
			}
			original = &knownMessage{message: copyOf(m), turn: m.StateTurn}
			if i > 0 {
				original.before = t.Messages[i-1].ID
			}
			return i > 0 || !t.Earlier
		}
		return !t.Earlier
	})
	return original, err
}

// copyOf returns a user's message as it was sent.
func copyOf(m *transcript.Message) gateway.CommandMessage {
	result := gateway.CommandMessage{ID: m.ID, Source: m.Source, Author: m.Author}
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case event.KindText:
			texts = append(texts, p.Text(event.Text))
		case event.KindMedia:
			result.Parts = append(result.Parts, event.Part{Kind: p.Kind, Media: p.Media})
		case event.KindData:
			result.Parts = append(result.Parts, event.Part{Kind: p.Kind, Data: p.Data})
		}
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	return result
}

// maxStops limits how often a truncate is tried. Between two attempts, the turns that were unfinished are stopped. A conversation in which
// programs begin turns all the time must not keep a request forever.
const maxStops = 5

// truncate removes the messages after one. Turns that still answer them are stopped: the user has replaced their question. The files of the
// removed messages are retained for a while, because one of the messages is sent again.
func (s *surface) truncate(ctx context.Context, p gateway.Principal, conversation, after string) error {
	for range maxStops {
		_, err := server.Do(ctx, s.gw, p, conversation, gateway.Command{Type: gateway.CommandTruncate, After: after, KeepFiles: true})
		if rejection, ok := errors.AsType[*gateway.Rejection](err); !ok || rejection.Reason != gateway.ReasonUnfinished {
			return err
		}
		if err := s.stopTurns(ctx, p, conversation); err != nil {
			return err
		}
	}
	return server.Errorf(http.StatusConflict, gateway.ReasonUnfinished, "other answers begin in this chat all the time; try again")
}

// answer passes on the answers in the last message, which is the agent's, and finds the place where the response to it continues.
//
// If another client has answered a request meanwhile, its answer counts, and the response continues as for any other. The client's own answer
// is dropped without an error, because the user sees from the rest of the message which one counts.
func (s *surface) answer(ctx context.Context, p gateway.Principal, rq *request, to *target) error {
	id, isFound, err := s.find(ctx, p, rq.ID)
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
			return outputAnswer(r, textOf(p.Output)), true
		case p.State == "output-error" && r.Kind == event.RequestApproval:
			return gateway.Command{Decision: event.Deny, Text: p.ErrorText}, true
		case p.State == "output-error":
			return gateway.Command{Text: errorAnswer(p.ErrorText)}, true
		}
	}
	return c, false
}

// outputAnswer returns the answer that the output of a call means: one of the decisions of the request, or a text.
func outputAnswer(r *event.Request, output string) gateway.Command {
	decisions := r.Options
	if r.Kind == event.RequestApproval {
		decisions = append([]string{string(event.Approve), string(event.Deny)}, decisions...)
	}
	for _, d := range decisions {
		if strings.EqualFold(d, strings.TrimSpace(output)) {
			return gateway.Command{Decision: event.Decision(d)}
		}
	}
	if output == "" {
		output = "(no output)" // an answer needs a decision or a text
	}
	return gateway.Command{Text: output}
}

// errorAnswer returns the text for an agent whose tool failed in the client.
func errorAnswer(text string) string {
	if text == "" {
		text = "the tool failed"
	}
	return "Error: " + text
}
