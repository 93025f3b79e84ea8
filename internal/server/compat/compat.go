package compat

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

const (
	// headerConversation names the conversation of a request, and in a response the conversation that was used.
	headerConversation = "Leat-Conversation"
	// headerListed, if it is "true", lists the new conversation of a request that names none.
	headerListed = "Leat-Listed"
)

// surface has the handlers of both APIs. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server.
//
// The two lists of models share a path, so their errors have the format of the client's API, which is
// known by its headers. The same applies to unknown paths below /v1/.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, viewers: srv.Metrics().Viewers("models")}
	srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodPost, Pattern: "/v1/messages", Handler: s.handler(messages{}), MaxBody: server.MaxMessageBody, Stream: true, Errors: anthropicError},
		{Method: http.MethodPost, Pattern: "/v1/chat/completions", Handler: s.handler(completions{}), MaxBody: server.MaxMessageBody, Stream: true, Errors: models.RespondOpenAI},
		{Method: http.MethodGet, Pattern: "/v1/models", Handler: s.models, Errors: eitherError},
		{Method: http.MethodGet, Pattern: "/v1/models/{model...}", Handler: s.model, Errors: eitherError},
	})
	srv.ErrorsBelow("/v1/", eitherError)
}

// request is a request of either API.
type request struct {
	model  string // if empty, the conversation's agent or the default one
	key    string // identifies a conversation of the caller; if empty, a new one
	source string // of the messages
	stream bool
	usage  bool // the stream reports the usage
	silent bool // reasoning is omitted
	before []gateway.CommandMessage
	last   gateway.CommandMessage
}

// api is one of the two APIs.
type api interface {
	// parse parses and checks a request. Its errors are for [server.Describe].
	parse(r *http.Request) (*request, error)
	// encoder returns the encoder for a turn's answer.
	encoder(rq *request, turn string) encoder
}

// encoder encodes an answer. All methods except complete append to a stream.
//
// complete appends the whole answer as one JSON value instead.
type encoder interface {
	Start(b []byte) []byte
	Text(b []byte, text string) []byte
	Reasoning(b []byte, text string) []byte
	Ping(b []byte) []byte
	End(b []byte, reason string, u *event.Usage) []byte
	fail(b []byte, e *server.Error) []byte
	complete(b []byte, pieces []answer.Piece, reason string, u *event.Usage) []byte
}

// The steps are the same for both APIs: parse, find the agent, count the viewer, find or create the
// conversation, add the message, and send the answer of its turn. The model of a request names the agent.
// Without one, the conversation's agent answers, whose name is then reported as the model. An error after
// the conversation was created removes it again if no other request can know it.
func (s *surface) handler(a api) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		rq, err := a.parse(r)
		if err != nil {
			return err
		}
		standard := models.Default(s.gw, p)
		switch {
		case rq.model == "" && standard == "":
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
		id, isNew, err := s.conversation(r, p, rq)
		if err != nil {
			return err
		}
		ack, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{
			Type: gateway.CommandSend, Key: r.Header.Get("Idempotency-Key"), Agent: rq.model, Message: &rq.last,
		})
		if err != nil {
			if isNew && server.Describe(err).Rejected {
				// No other client knows the conversation yet. Clients retry automatically, and without this each try would leave
				// one.
				_, deleteErr := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandDelete})
				err = errors.Join(err, deleteErr)
			}
			return err
		}
		if rq.model == "" {
			c, err := s.gw.Conversation(r.Context(), p, gateway.ActionRead, id)
			if err != nil {
				return err
			}
			rq.model = cmp.Or(c.Agent, standard)
		}
		w.Header().Set("Request-Id", server.RequestID(r.Context()))
		w.Header().Set(headerConversation, id)
		w.Header().Set("Leat-Turn", ack.Turn)
		to := a.encoder(rq, ack.Turn)
		if rq.stream {
			return s.stream(w, r, p, id, ack.Turn, rq, to)
		}
		return s.answer(w, r, p, id, ack.Turn, rq, to)
	}
}

// answer waits for the end of a turn and responds with its complete answer.
//
// The header X-Should-Retry is known to the official clients of both APIs, which otherwise repeat a
// request after a 5xx.
func (s *surface) answer(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, rq *request, to encoder) error {
	// The operations don't matter here: what was taken back, or asked and answered, is not part of a whole answer.
	var reply *answer.Answer
	err := follow.Answer{Op: func(a *answer.Answer, _ *answer.Op) error { reply = a; return nil }}.Follow(r.Context(), s.gw, p, conversation, turn, -1)
	if err != nil {
		return err
	}
	state := reply.Turn()
	if e := failed(state); e != nil {
		if e.RetryAfter == 0 {
			w.Header().Set("X-Should-Retry", "false") // the clients would run another turn by themselves
		}
		return e
	}
	server.WriteRawJSON(w, http.StatusOK, to.complete(nil, merged(reply.Pieces(), rq.silent), state.Reason, state.Usage))
	return nil
}

// hexID returns an id without dashes, as in the APIs.
func hexID(id string) string { return strings.ReplaceAll(id, "-", "") }
