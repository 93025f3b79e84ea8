package compat

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

const (
	// HeaderConversation names the conversation that a request goes to, and in an answer the one that it went to.
	HeaderConversation = "Leat-Conversation"
	// HeaderListed, if it is "true", has the conversation of a request that names none appear in lists.
	HeaderListed = "Leat-Listed"
)

type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	viewers *server.ViewerMetrics
}

// Register adds the routes of the surface to a server.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, viewers: srv.Metrics().Viewers("models")}
	for _, r := range []server.Route{
		{Method: http.MethodPost, Pattern: "/v1/messages", Handler: s.handler(messages{}), MaxBody: server.MaxMessageBody, Stream: true, Errors: anthropicError},
		{Method: http.MethodPost, Pattern: "/v1/chat/completions", Handler: s.handler(completions{}), MaxBody: server.MaxMessageBody, Stream: true, Errors: openaiError},
		{Method: http.MethodGet, Pattern: "/v1/models", Handler: s.models, Errors: eitherError},
		{Method: http.MethodGet, Pattern: "/v1/models/{model...}", Handler: s.model, Errors: eitherError},
	} {
		r.Access = server.Authenticated
		srv.Handle(r)
	}
	srv.ErrorsBelow("/v1/", eitherError)
}

// request is what both APIs ask for.
type request struct {
	model  string // empty: the conversation's agent, or the default one
	key    string // names a conversation of who asks; empty: a new one
	source string // of the messages
	stream bool
	usage  bool // the stream tells what it used
	silent bool // reasoning is left out
	before []gateway.CommandMessage
	last   gateway.CommandMessage
}

// api is one of the two.
type api interface {
	// read reads and checks a request. Errors are for [server.Describe].
	read(r *http.Request) (*request, error)
	// encoder returns what writes the answer of a turn.
	encoder(rq *request, turn string) encoder
}

// encoder writes an answer. All but whole append to a stream.
type encoder interface {
	Start(b []byte) []byte
	Text(b []byte, text string) []byte
	Reasoning(b []byte, text string) []byte
	Ping(b []byte) []byte
	End(b []byte, reason string, u *event.Usage) []byte
	fail(b []byte, e *server.Error) []byte
	whole(b []byte, pieces []piece, reason string, u *event.Usage) []byte
}

func (s *surface) handler(a api) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		rq, err := a.read(r)
		if err != nil {
			return err
		}
		standard := s.defaultAgent(p)
		switch {
		case rq.model == "" && standard == "":
			return errNoAgent
		case rq.model != "" && !s.known(p, rq.model):
			return unknownModel(rq.model)
		}
		// Asked first, so that nothing is said where the answer could not be followed.
		leave, err := s.gw.AddViewer(p)
		if err != nil {
			return err
		}
		defer leave()
		id, fresh, err := s.conversation(r, p, rq)
		if err != nil {
			return err
		}
		ack, err := s.do(r.Context(), p, id, gateway.Command{
			Type: gateway.CommandSend, Key: r.Header.Get("Idempotency-Key"), Agent: rq.model, Message: &rq.last,
		})
		if err != nil {
			if fresh && server.Describe(err).Rejected {
				// Nobody knows of it yet, and clients that are told to wait come back by themselves.
				_, gone := s.do(r.Context(), p, id, gateway.Command{Type: gateway.CommandDelete})
				err = errors.Join(err, gone)
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
		w.Header().Set(HeaderConversation, id)
		w.Header().Set("Leat-Turn", ack.Turn)
		to := a.encoder(rq, ack.Turn)
		if rq.stream {
			return s.stream(w, r, p, id, ack.Turn, rq, to)
		}
		return s.answer(w, r, p, id, ack.Turn, rq, to)
	}
}

// answer waits for the end of a turn and answers with the whole.
func (s *surface) answer(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, rq *request, to encoder) error {
	var last state
	err := s.follow(r.Context(), p, conversation, turn, follower{State: func(now *state) (bool, error) {
		last = *now
		return now.over(), nil
	}})
	if err != nil {
		return err
	}
	if e := failed(&last.turn); e != nil {
		if e.RetryAfter == 0 {
			w.Header().Set("X-Should-Retry", "false") // the clients would run another turn by themselves
		}
		return e
	}
	server.WriteRawJSON(w, http.StatusOK, to.whole(nil, merged(last.pieces, rq.silent), last.turn.Reason, last.turn.Usage))
	return nil
}

// commandLimit bounds how long a command may take: longer than a gateway tries to commit it.
const commandLimit = 35 * time.Second

// do carries a command out. A client that goes away takes nothing back.
func (s *surface) do(ctx context.Context, p gateway.Principal, conversation string, c gateway.Command) (gateway.Ack, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
	defer cancel()
	return s.gw.Do(ctx, p, conversation, c)
}

// hexID is an id without its dashes, as the APIs' own look.
func hexID(id string) string { return strings.ReplaceAll(id, "-", "") }
