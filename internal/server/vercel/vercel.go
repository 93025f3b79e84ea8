// The routes.

package vercel

import (
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// source marks messages that came from the SDK.
const source = "vercel"

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server. The path is the SDK's default.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodPost, Pattern: "/api/chat", Handler: s.post, MaxBody: maxBody, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodGet, Pattern: "/api/chat", Handler: s.resumeByQuery, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodGet, Pattern: "/api/chat/{id}", Handler: s.messages, Errors: chats.RespondError},
		{Method: http.MethodGet, Pattern: "/api/chat/{id}/stream", Handler: s.resume, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodDelete, Pattern: "/api/chat/{id}/stream", Handler: s.stop, Errors: chats.RespondError},
	})
}

// post adds a message, an edit or an answer and streams the turn.
func (s *surface) post(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	to, err := targetOf(r)
	if err != nil {
		return err
	}
	rq, err := parse(r)
	if err != nil {
		return err
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	if rq.last.Role == "assistant" {
		err = s.answer(r.Context(), p, rq, &to)
	} else {
		err = s.send(r.Context(), p, rq, &to)
	}
	if err != nil {
		return err
	}
	return s.stream(w, r, p, to)
}

// targetOf reads the parameters that all streams have.
func targetOf(r *http.Request) (to target, err error) {
	if to.sdk, err = versionOf(r); err != nil {
		return to, err
	}
	to.after = -1
	to.stopsTurn, err = stopsTurn(r)
	return to, err
}

// resumeByQuery answers the resume of versions 5 and 6 if the page's api has a query: they append the path to it.
func (s *surface) resumeByQuery(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	for _, values := range r.URL.Query() {
		for _, v := range values {
			if path, ok := strings.CutSuffix(v, "/stream"); ok {
				if _, id, ok := strings.Cut(path, "/"); ok {
					return s.resumeChat(w, r, p, id)
				}
			}
		}
	}
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no chat is named; use /api/chat/ID/stream")
}

// resume answers the resume of the default transport. Pages also resume chats that don't exist yet, so an unknown chat
// gets the same response as one that nothing runs in.
func (s *surface) resume(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.resumeChat(w, r, p, r.PathValue("id"))
}

// resumeChat streams the answer of a chat's unfinished turn from its beginning, or responds with 204.
func (s *surface) resumeChat(w http.ResponseWriter, r *http.Request, p gateway.Principal, chat string) error {
	to, err := targetOf(r)
	if err != nil {
		return err
	}
	id, isFound, err := s.chats.Find(r.Context(), p, chat)
	if err != nil {
		return err
	}
	if isFound {
		to.conversation = id
		turns, err := s.chats.Unfinished(r.Context(), p, id)
		if err != nil {
			return err
		}
		if len(turns) > 0 {
			to.turn = turns[len(turns)-1] // its answer is the last message of the chat
		}
	}
	if to.turn == "" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	return s.stream(w, r, p, to)
}

// stop stops the unfinished turns of a chat.
//
// The SDK's default transport has no request for it: its own stop only disconnects, which a reload and a lost network do too. So pages call this
// route themselves.
func (s *surface) stop(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, isFound, err := s.chats.Find(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !isFound {
		return gateway.ErrNotFound
	}
	if err := s.chats.Stop(r.Context(), p, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
