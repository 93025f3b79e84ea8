// The commands of the thread stream.

package langgraph

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// commandRequest is a command. Its id is a number that the client chooses.
type commandRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// commandResponse is the response to a command. Type is success or error.
type commandResponse struct {
	Type    string          `json:"type"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Message string          `json:"message,omitempty"`
	Meta    *commandMeta    `json:"meta,omitempty"`
}

// commandMeta says which events are older than the command: clients ignore questions in them that were answered.
type commandMeta struct {
	Seq int64 `json:"applied_through_seq"`
}

// runResult is the result of a command that begins a run.
type runResult struct {
	Run string `json:"run_id"`
}

// errUnknownCommand is the error for a command that the protocol doesn't have.
var errUnknownCommand = server.Invalid("unknown command")

// command answers POST /threads/{thread}/commands. A command that is refused is an error of the protocol and not of HTTP.
func (s *surface) command(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var c commandRequest
	if err := server.Decode(r, &c); err != nil {
		return err
	}
	if len(c.ID) == 0 {
		return server.Invalid("a command needs an id")
	}
	response := commandResponse{Type: "success", ID: c.ID}
	result, seq, err := s.execute(r, p, &c)
	if err == nil {
		response.Result, response.Meta = result, &commandMeta{seq<<seqShift | (1<<seqShift - 1)}
		return server.Respond(w, response, nil)
	}
	// A thread that is missing, and errors that may pass, are no fault of the command: the client reports the former, and repeats it after the latter.
	switch e := server.Describe(err); {
	case e.Reason == gateway.ReasonUnknownAgent:
	case e.Status == http.StatusNotFound, e.Status == http.StatusGone, e.Status == http.StatusTooManyRequests, e.Status >= http.StatusInternalServerError:
		return err
	}
	response.Type = "error"
	response.Error, response.Message = errorOf(err)
	return server.Respond(w, response, nil)
}

// execute carries out a command. It also returns the seq of the log before the command.
func (s *surface) execute(r *http.Request, p gateway.Principal, c *commandRequest) (result any, seq int64, err error) {
	switch c.Method {
	case "run.start":
		return s.startCommand(r, p, c.Params)
	case "input.respond":
		return s.respondCommand(r, p, c.Params)
	case "input.inject":
		return s.injectCommand(r, p, c.Params)
	case "state.get", "state.listCheckpoints":
		return s.stateCommand(r, p, c.Method)
	case "state.fork", "agent.getTree", "subscription.subscribe", "subscription.unsubscribe":
		return nil, 0, unsupported("%s isn't available here", c.Method)
	}
	return nil, 0, errUnknownCommand
}

// startCommand begins a run, in a new thread too.
func (s *surface) startCommand(r *http.Request, p gateway.Principal, params json.RawMessage) (result any, seq int64, err error) {
	in := &runRequest{}
	if err := server.Unmarshal(params, in, false); err != nil {
		return nil, 0, err
	}
	if err := in.check(); err != nil {
		return nil, 0, err
	}
	agent, err := s.agentOf(p, in.Assistant)
	if err != nil {
		return nil, 0, err
	}
	id, _, err := s.createConversation(r.Context(), p, r.PathValue("id"), agent, nil)
	if err != nil {
		return nil, 0, err
	}
	if seq, err = s.head(r.Context(), p, id); err != nil {
		return nil, 0, err
	}
	ref, err := s.start(r.Context(), p, id, agent, in)
	return runResult{ref.id()}, seq, err
}

// head returns the seq of the newest event of a conversation.
func (s *surface) head(ctx context.Context, p gateway.Principal, conversation string) (int64, error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	return c.Head, err
}

// response is the answer to one question.
type response struct {
	Interrupt string          `json:"interrupt_id"`
	Response  json.RawMessage `json:"response"`
}

// respondCommand answers questions.
func (s *surface) respondCommand(r *http.Request, p gateway.Principal, params json.RawMessage) (result any, seq int64, err error) {
	var body struct {
		response
		Responses []response      `json:"responses"`
		Update    json.RawMessage `json:"update"`
		Goto      json.RawMessage `json:"goto"`
	}
	if err := server.Unmarshal(params, &body, false); err != nil {
		return nil, 0, err
	}
	if isPresent(body.Update) || isPresent(body.Goto) {
		return nil, 0, unsupported("an answer can't update a state or go to a node here")
	}
	if body.Interrupt != "" {
		body.Responses = append(body.Responses, body.response)
	}
	id, err := s.open(r, p)
	if err != nil {
		return nil, 0, err
	}
	if seq, err = s.head(r.Context(), p, id); err != nil {
		return nil, 0, err
	}
	open, err := s.openRequests(r.Context(), p, id)
	if err != nil {
		return nil, 0, err
	}
	answers := map[string]json.RawMessage{}
	for _, a := range body.Responses {
		answers[a.Interrupt] = a.Response
	}
	if len(answers) == 0 {
		return nil, 0, server.Invalid("an answer needs an interrupt_id")
	}
	ref, err := s.answer(r.Context(), p, id, open, answers)
	return runResult{ref.id()}, seq, err
}

// injectCommand adds a message of the user. The running turn takes it if its agent can, and otherwise it gets a separate turn.
func (s *surface) injectCommand(r *http.Request, p gateway.Principal, params json.RawMessage) (result any, seq int64, err error) {
	var body struct {
		Message inputMessage `json:"message"`
	}
	if err := server.Unmarshal(params, &body, false); err != nil {
		return nil, 0, err
	}
	if !body.Message.isHuman() {
		return nil, 0, unsupported("only a message of the user can be added")
	}
	m, err := body.Message.command()
	if err != nil {
		return nil, 0, err
	}
	id, err := s.open(r, p)
	if err != nil {
		return nil, 0, err
	}
	ack, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandSend, Message: m})
	return struct{}{}, ack.Seq, err
}

// stateResult is the result of state.get.
type stateResult struct {
	Values     *values        `json:"values"`
	Checkpoint *checkpointRef `json:"checkpoint,omitempty"`
}

// stateCommand returns the state of a thread, or its checkpoints.
func (s *surface) stateCommand(r *http.Request, p gateway.Principal, method string) (result any, seq int64, err error) {
	id, err := s.open(r, p)
	if err != nil {
		return nil, 0, err
	}
	var list []*view
	err = s.gw.ViewTranscript(r.Context(), p, id, func(t *transcript.Transcript) bool {
		list = viewsOf(t)
		return !t.Earlier
	})
	if err != nil {
		return nil, 0, err
	}
	if method == "state.get" {
		st := stateOf("", list[0])
		return stateResult{st.Values, st.Checkpoint}, list[0].seq, nil
	}
	checkpoints := []checkpointSummary{}
	for _, v := range list {
		if len(v.messages) > 0 {
			checkpoints = append(checkpoints, checkpointSummary{checkpointID(v.seq), timeOf(v.at), v.seq, node})
		}
	}
	return struct {
		Checkpoints []checkpointSummary `json:"checkpoints"`
	}{checkpoints}, list[0].seq, nil
}

// checkpointSummary is a checkpoint without its state.
type checkpointSummary struct {
	ID   string `json:"id"`
	Time string `json:"timestamp"`
	Step int64  `json:"step"`
	Node string `json:"node_name"`
}

// errorOf returns the code of the protocol for an error, and its text.
func errorOf(err error) (code, text string) {
	e := server.Describe(err)
	code = "unknown_error"
	switch {
	case errors.Is(err, errUnknownCommand):
		code = "unknown_command"
	case e.Reason == server.ReasonTurnOver:
		code = "no_such_interrupt"
	case e.Status == http.StatusUnprocessableEntity:
		code = "not_supported"
	case slices.Contains([]int{http.StatusForbidden, http.StatusUnauthorized}, e.Status):
		code = "permission_denied"
	case e.Status < http.StatusInternalServerError:
		code = "invalid_argument"
	}
	return code, chats.Sentence(e.Message)
}
