// Requests that begin a run.

package langgraph

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// begin begins the run of a request, in the thread of its path, or in a new one if the path has none. The headers of the response name the run.
func (s *surface) begin(w http.ResponseWriter, r *http.Request, p gateway.Principal, in *runRequest) (ref runRef, thread string, err error) {
	if err := in.check(); err != nil {
		return ref, "", err
	}
	agent, err := s.agentOf(p, in.Assistant)
	if err != nil {
		return ref, "", err
	}
	conversation := ""
	switch thread = r.PathValue("id"); {
	case thread == "":
		ref, err = s.beginAlone(r.Context(), p, agent, in)
		thread = ref.conversation
	case in.IfNotExists == "create":
		conversation, _, err = s.createConversation(r.Context(), p, thread, agent, nil)
	default:
		conversation, err = s.open(r, p)
	}
	if err == nil && ref.conversation == "" {
		ref, err = s.start(r.Context(), p, conversation, agent, in)
	}
	if err != nil {
		return ref, "", err
	}
	nameRun(w, thread, ref, in.StreamMode)
	return ref, thread, nil
}

// beginAlone begins a run in a new thread, which has the id of its conversation.
//
// The thread of a run that is refused is deleted. No client knows it, and each retry would leave another one.
func (s *surface) beginAlone(ctx context.Context, p gateway.Principal, agent string, in *runRequest) (ref runRef, err error) {
	conversation, _, err := s.createConversation(ctx, p, "", agent, nil)
	if err != nil {
		return ref, err
	}
	if ref, err = s.start(ctx, p, conversation, agent, in); err != nil {
		_, deleteErr := server.Do(ctx, s.gw, p, conversation, gateway.Command{Type: gateway.CommandDelete})
		return runRef{}, errors.Join(err, deleteErr)
	}
	return ref, nil
}

// nameRun sets the headers that name a run and the path of its stream. Clients don't join a run again after a lost connection without the latter.
//
// Both are relative to the URL that the client was given, which ends with the prefix. Some clients don't repeat their modes when they join again, so
// the path of the stream has them. Clients take everything after the id of the run in Content-Location for a part of it.
func nameRun(w http.ResponseWriter, thread string, ref runRef, modes []string) {
	location := "/threads/" + url.PathEscape(thread) + "/runs/" + ref.id()
	w.Header().Set("Content-Location", location)
	w.Header().Set("Location", location+"/stream?"+url.Values{"stream_mode": modes}.Encode())
}

// createRun answers POST /threads/{id}/runs and /runs: it begins a run and doesn't wait for it.
func (s *surface) createRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	in := &runRequest{}
	if err := server.Decode(r, in); err != nil {
		return err
	}
	ref, thread, err := s.begin(w, r, p, in)
	if err != nil {
		return err
	}
	_, turn, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, ref.turn)
	return server.Respond(w, runOf(ref.id(), thread, &turn), err)
}
