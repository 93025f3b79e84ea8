// Requests for responses. They begin a turn, or continue one that waits.
//
// What a request continues is found by the ids in it, which are made of Leat's own: the turn of previous_response_id, or that of the call whose
// output it has. So a client that keeps its history itself continues the same turn as one that names the response.

package responses

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// keyTemporary is the metadata of a conversation that is deleted when its answer has been delivered. Its value isn't a text, so it is not part
// of the metadata of clients.
const keyTemporary = "responses.temporary"

// target is a response: what a turn answers from a number on.
type target struct {
	conversation, turn string
	from               int64
}

// create begins a response, or continues a turn that waits, and sends it as the request asks.
func (s *surface) create(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	rq, err := parse(r)
	if err != nil {
		return err
	}
	switch {
	case rq.model == "" && models.Default(s.gw, p) == "":
		return models.ErrNoAgent
	case rq.model != "" && !models.IsAgent(s.gw, p, rq.model):
		return models.Unknown(rq.model)
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	to, err := s.begin(r, p, rq)
	if err != nil {
		return err
	}
	w.Header().Set(headerConversation, to.conversation)
	w.Header().Set("Leat-Turn", to.turn)
	w.Header().Set("X-Request-Id", server.RequestID(r.Context()))
	object := newObject(to.conversation, to.turn, to.from, rq.settings)
	if rq.stream {
		err = s.stream(w, r, p, to, object, -1)
	} else {
		err = s.complete(r.Context(), p, to, object, rq.Background)
		if err == nil {
			err = server.Respond(w, object, nil)
		}
	}
	if err != nil {
		return err
	}
	return s.forget(r.Context(), p, to, rq)
}

// begin finds or creates the conversation, and begins or continues the turn.
//
// Three requests begin no turn: the output of a tool, the decision on an approval, and the answer to a question. They continue the turn that
// waits for them.
func (s *surface) begin(r *http.Request, p gateway.Principal, rq *request) (to target, err error) {
	ctx := r.Context()
	if rq.last == nil {
		return s.answer(ctx, p, rq.replies, rq.replies[len(rq.replies)-1].turn)
	}
	// A history has the outputs of earlier calls, which were answered long ago. One that is still missing can't come together with a message,
	// because the two belong to different turns and a request has one response.
	for _, y := range rq.replies {
		isOpen, err := s.chats.IsOpen(ctx, p, y.turn, y.request)
		if err != nil && !errors.Is(err, gateway.ErrNotFound) {
			return to, err
		}
		if isOpen {
			return to, server.Invalid("input: send the outputs of tools without a new message, and the message after the response to them")
		}
	}
	key := r.Header.Get("Idempotency-Key")
	id, err := s.existing(ctx, p, rq)
	if err != nil {
		return to, err
	}
	isNew := false
	if id == "" {
		id, isNew, err = s.createFor(ctx, p, rq, key, r.Header.Get(headerListed) != "true")
	} else {
		var isAnswer bool
		if to, isAnswer, err = s.answerByMessage(ctx, p, id, rq.last); isAnswer {
			return to, err
		}
	}
	if err != nil {
		return to, err
	}
	// Each message gets a separate turn, even if the running one could take it: the client expects one response for each request.
	ack, err := server.Do(ctx, s.gw, p, id, gateway.Command{Type: gateway.CommandSend, Key: key, Agent: rq.model, Message: rq.last, Queue: true, Tools: rq.functions})
	if err != nil && isNew && server.Describe(err).Rejected {
		// No other client knows the conversation yet, and clients retry automatically.
		_, deleteErr := server.Do(ctx, s.gw, p, id, gateway.Command{Type: gateway.CommandDelete})
		err = errors.Join(err, deleteErr)
	}
	return target{conversation: id, turn: ack.Turn}, err
}

// existing returns the conversation that a request names, or "".
//
// A response that isn't the newest of its conversation is refused. An answer to it would have a history that the client doesn't expect.
func (s *surface) existing(ctx context.Context, p gateway.Principal, rq *request) (string, error) {
	if rq.previous == "" {
		if rq.conversation == "" {
			return "", nil
		}
		_, err := s.gw.Conversation(ctx, p, gateway.ActionWrite, rq.conversation)
		return rq.conversation, err
	}
	turn, _, err := parseResponse(rq.previous)
	if err != nil {
		return "", err
	}
	id, _, err := s.gw.Turn(ctx, p, gateway.ActionWrite, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return "", errNoResponse
	}
	if err != nil {
		return "", err
	}
	// The newest turns are always in memory, so the older part of the conversation isn't needed.
	last := ""
	err = s.gw.ViewTranscript(ctx, p, id, func(t *transcript.Transcript) bool {
		for _, turn := range t.Turns {
			if turn.Independent() {
				last = turn.ID
			}
		}
		return true
	})
	if err == nil && last != turn {
		err = server.Errorf(http.StatusBadRequest, reasonNotLast, "previous_response_id: the conversation has continued since %q, and conversations have no branches; use the newest response, or conversation", rq.previous)
	}
	return id, err
}

// createFor creates the conversation of a request that names none. If isNew is true, no other request can know it.
//
// It is unlisted, as for the other model APIs: many clients keep the history themselves, so a list would have one entry for each request.
func (s *surface) createFor(ctx context.Context, p gateway.Principal, rq *request, key string, isUnlisted bool) (id string, isNew bool, err error) {
	ctx, cancel := server.CommandContext(ctx)
	defer cancel()
	opt := gateway.CreateOptions{Agent: rq.model, Messages: rq.before, Key: key, Unlisted: isUnlisted || rq.IsTemporary}
	if rq.Instructions != nil && *rq.Instructions != "" {
		opt.Messages = slices.Insert(slices.Clone(opt.Messages), 0, gateway.CommandMessage{Role: event.System, Text: *rq.Instructions, Source: source})
	}
	if rq.IsTemporary {
		opt.Metadata = map[string]json.RawMessage{keyTemporary: json.RawMessage("true")}
	}
	c, _, err := s.gw.Create(ctx, p, opt)
	return c.ID, key == "", err
}

// answer passes on the answers to the requests of a turn, and returns the response that follows them.
//
// If another client has answered a request meanwhile, its answer counts. A request that is sent again gets the same response.
func (s *surface) answer(ctx context.Context, p gateway.Principal, replies []reply, turn string) (to target, err error) {
	id, t, err := s.gw.Turn(ctx, p, gateway.ActionWrite, turn)
	if errors.Is(err, gateway.ErrNotFound) {
		return to, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "input: the response that asked for this is not found")
	}
	if err != nil {
		return to, err
	}
	// The requests are noted even if they were answered before, by this client or another one: their answer is where the response begins.
	requests := map[string]bool{}
	for _, y := range replies {
		if y.turn != turn {
			continue // of the history
		}
		requests[y.request] = true
		for _, r := range t.Requests {
			if r.ID != y.request {
				continue
			}
			c := y.command(&r.Request)
			c.Type, c.Turn, c.Request = gateway.CommandAnswer, turn, r.ID
			_, err := server.Do(ctx, s.gw, p, id, c)
			if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonAnswered {
				continue
			}
			if err != nil {
				return to, err
			}
		}
	}
	from, err := s.findAnswers(ctx, p, id, turn, requests)
	if err == nil && from == 0 {
		err = server.Invalid("input: the turn has ended without an answer to this")
	}
	return target{id, turn, from}, err
}

// answerByMessage answers the question for which a conversation waits, if it does: a question without a tool is a message, and so is its answer.
// It refuses a message while a tool's output or an approval is missing, as OpenAI does, because the message would wait for a client that
// waits for the message.
func (s *surface) answerByMessage(ctx context.Context, p gateway.Principal, id string, m *gateway.CommandMessage) (to target, isAnswer bool, err error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, id)
	if err != nil {
		return to, false, err
	}
	for _, turn := range c.WaitingTurns {
		_, t, err := s.gw.Turn(ctx, p, gateway.ActionRead, turn)
		if err != nil {
			return to, false, err
		}
		for _, r := range t.Requests {
			if r.Kind == event.RequestApproval || r.Tool != "" {
				return to, false, server.Errorf(http.StatusBadRequest, reasonNoOutput, "No tool output found for %s %s.", r.Kind, requestID(prefixCall, turn, r.ID))
			}
		}
		for _, r := range t.Requests {
			to, err := s.answer(ctx, p, []reply{{turn: turn, request: r.ID, output: m.Text}}, turn)
			return to, true, err
		}
	}
	return to, false, nil
}

// forget deletes the conversation of a request with store false, when its answer was delivered. A turn that waits is continued later.
func (s *surface) forget(ctx context.Context, p gateway.Principal, to target, rq *request) error {
	if !rq.IsTemporary {
		return nil
	}
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, to.conversation)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isTemporary(&c) || len(c.Open) > 0 {
		return nil
	}
	_, err = server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandDelete})
	return err
}

// isTemporary reports whether a conversation was created by a request that wanted nothing stored. Others are never deleted, whatever the next
// request says.
func isTemporary(c *journal.Summary) bool { return string(c.Metadata[keyTemporary]) == "true" }
