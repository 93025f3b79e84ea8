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
	"github.com/leat-dev/leat/transcript"
)

// target is what a run streams.
type target struct {
	in           *input
	conversation string   // empty if the thread doesn't exist
	turns        []string // in the order of their starts
	isBehind     bool     // the client may lack something of what happened before the seq head
	head         int64
	// last is the last turn of the conversation, if it had ended when the messages were read. If no turn is streamed, its outcome is that of the
	// run: a page that comes back sees that the answer failed.
	last      *transcript.Turn
	stopsTurn bool // the turns are stopped when the client disconnects
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
	if to.stopsTurn, err = chats.StopsTurn(r.URL.Query().Get("on_disconnect")); err != nil {
		return to, "", err
	}
	to.in, err = parse(body)
	return to, agent, err
}

// send adds the user's message, unless the conversation has it, and finds the turn that answers it.
func (s *surface) send(ctx context.Context, p gateway.Principal, agent string, m *message, to *target) error {
	message, err := commandMessage(m)
	if err != nil {
		return err
	}
	if to.conversation, err = s.chats.Open(ctx, p, to.in.Thread, agent); err != nil {
		return err
	}
	turn, err := s.chats.Send(ctx, p, to.conversation, gateway.Command{Agent: agent, Message: &message, Tools: to.in.Tools})
	if err != nil {
		return err
	}
	to.turns = []string{turn}
	return nil
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
		return chats.OutputAnswer(r, chats.TextOf(m.Content)), true
	}
	return c, false
}
