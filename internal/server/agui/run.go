// Runs: new messages, answers, and clients that come back.

package agui

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// target is what a run streams.
type target struct {
	in           *input
	conversation string   // empty if the thread doesn't exist
	turns        []string // in the order of their starts
	isBehind     bool     // the client may lack something of what happened before the seq head
	head         int64
	stopsTurn    bool // the turns are stopped when the client disconnects
}

// run begins or continues the turns of a thread and streams them.
//
//   - With answers to questions, it passes them on and streams the turns that continue.
//   - With a new message of the user, it begins a turn. A message that has been answered gets another answer.
//   - Otherwise the client has lost a response, and gets what it lacks.
func (s *surface) run(w http.ResponseWriter, r *http.Request, p gateway.Principal, name string, body []byte) error {
	to, agent, err := s.prepare(r, p, name, body)
	if err != nil {
		return err
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	if m := to.in.last(); m != nil && m.Role == roleUser && len(to.in.Resume) == 0 {
		err = s.send(r.Context(), p, agent, m, &to)
	} else {
		err = s.proceed(r.Context(), p, &to, true)
	}
	if err != nil {
		return err
	}
	return s.stream(w, r, p, to)
}

// connect streams what a page lacks that has just opened a thread. It may not exist yet.
//
// It never changes anything, so it ignores answers: a page that connects shows the questions again.
func (s *surface) connect(w http.ResponseWriter, r *http.Request, p gateway.Principal, name string, body []byte) error {
	to, _, err := s.prepare(r, p, name, body)
	if err != nil {
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.proceed(r.Context(), p, &to, false); err != nil {
		return err
	}
	return s.stream(w, r, p, to)
}

// prepare reads a request and finds its agent.
func (s *surface) prepare(r *http.Request, p gateway.Principal, name string, body []byte) (to target, agent string, err error) {
	if agent, err = s.agentOf(p, name); err != nil {
		return to, "", err
	}
	if to.stopsTurn, err = stopsOnDisconnect(r); err != nil {
		return to, "", err
	}
	to.in, err = parse(body)
	return to, agent, err
}

// send adds the user's message, unless the conversation has it, and finds the turn that answers it.
//
// Each message gets a separate turn, even if the running one could take it: the client expects one answer for each run.
func (s *surface) send(ctx context.Context, p gateway.Principal, agent string, m *message, to *target) error {
	message, err := commandMessage(m)
	if err != nil {
		return err
	}
	if to.conversation, err = s.chats.Open(ctx, p, to.in.Thread, agent); err != nil {
		return err
	}
	original, err := s.chats.Message(ctx, p, to.conversation, message.ID)
	if err != nil {
		return err
	}
	// The client doesn't say whether it repeats a request whose response was lost, or wants another answer. An answer that is still written is the
	// former: a page has no reason to ask again for what is being answered. For a finished one both look the same, and the user sees the difference: the
	// page has removed the answer from its own list before it ran.
	if original != nil {
		isUnfinished, err := s.isUnfinished(ctx, p, original.Turn)
		if err != nil {
			return err
		}
		if isUnfinished {
			to.turns = []string{original.Turn} // the client has lost the response before it got anything
			return nil
		}
		if err := s.chats.Truncate(ctx, p, to.conversation, original.Before); err != nil {
			return err
		}
		if original.Text == message.Text {
			message = original.CommandMessage // with its files as they are stored
		}
	}
	ack, err := server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandSend, Agent: agent, Message: &message, Queue: true})
	if err != nil {
		return err
	}
	to.turns = []string{ack.Turn}
	return nil
}

// isUnfinished reports whether a turn exists and has not ended.
func (s *surface) isUnfinished(ctx context.Context, p gateway.Principal, turn string) (bool, error) {
	if turn == "" {
		return false, nil
	}
	_, t, err := s.gw.Turn(ctx, p, gateway.ActionRead, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return false, nil
	}
	return err == nil && t.Unfinished(), err
}

// proceed finds the unfinished turns of a thread, and passes on the answers to their questions if the request may have any.
//
// If another client has answered a question meanwhile, its answer counts. The client sees that from what follows.
func (s *surface) proceed(ctx context.Context, p gateway.Principal, to *target, mayAnswer bool) error {
	id, isFound, err := s.chats.Find(ctx, p, to.in.Thread)
	if err != nil {
		return err
	}
	if !isFound {
		if mayAnswer {
			return server.Invalid("a new thread begins with a message of the user")
		}
		return nil
	}
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, id)
	if err != nil {
		return err
	}
	// The turns are looked up before the answers are given, because an answer may let its turn end at once.
	to.conversation, to.isBehind, to.head = id, true, c.Head
	if to.turns, err = s.chats.Unfinished(ctx, p, id); err != nil || !mayAnswer {
		return err
	}
	for _, turn := range to.turns {
		_, t, err := s.gw.Turn(ctx, p, gateway.ActionRead, turn)
		if errors.Is(err, gateway.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, r := range t.Requests {
			c, ok := answerTo(&r.Request, to.in)
			if !ok {
				continue
			}
			c.Type, c.Turn, c.Request = gateway.CommandAnswer, turn, r.ID
			_, err := server.Do(ctx, s.gw, p, id, c)
			if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonAnswered {
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// answerTo returns the answer to a request in a run's input: in its answers to interrupts, or in the results of the page's tools.
func answerTo(r *event.Request, in *input) (c gateway.Command, ok bool) {
	for _, e := range in.Resume {
		if e.Interrupt == r.ID {
			return interruptAnswer(r, &e), true
		}
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role != roleTool || m.CallID != r.ID {
			continue
		}
		if m.Error != "" {
			return gateway.Command{Text: chats.ErrorAnswer(m.Error)}, true
		}
		return chats.OutputAnswer(r, jsonText(m.Content)), true
	}
	return c, false
}
