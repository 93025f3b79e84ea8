// Requests that wait for the end of a run.

package langgraph

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// runOutcome is the response to a request that waits: the state of the thread at the end of the run, with its questions or its error.
type runOutcome struct {
	values
	Error *failure `json:"__error__,omitempty"`
}

// waitRun answers POST /threads/{id}/runs/wait and /runs/wait: it begins a run and waits for its end.
func (s *surface) waitRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	in := &runRequest{}
	if err := server.Decode(r, in); err != nil {
		return err
	}
	stopsTurn, err := in.stopsTurn()
	if err != nil {
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	ref, _, err := s.begin(w, r, p, in)
	if err != nil {
		return err
	}
	return s.wait(w, r, p, ref, stopsTurn)
}

// joinRun answers GET /threads/{id}/runs/{turn}/join: it waits for the end of a run that exists.
func (s *surface) joinRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	ref, _, err := s.findRun(r, p)
	if err != nil {
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	return s.wait(w, r, p, ref, r.URL.Query().Get("cancel_on_disconnect") == "1")
}

// wait waits for the end of a run. Line feeds before the JSON keep the connection alive.
func (s *surface) wait(w http.ResponseWriter, r *http.Request, p gateway.Principal, ref runRef, stopsTurn bool) error {
	st := s.openResponse(w, r, "application/json", "\n")
	defer st.close()
	if st.response.Head() {
		return nil
	}
	outcome := &runOutcome{}
	events := newRunWriter(map[string]bool{}, ref, "", -1, s.loader(r.Context(), p, ref))
	events.outcome = outcome
	err := s.followRun(r.Context(), p, events, st, func([]byte) error { return nil })
	switch cause := context.Cause(r.Context()); {
	case err == nil:
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler) // half an answer would be none
	case st.err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, ref, stopsTurn)
	default:
		e := server.Describe(err)
		outcome.Error = &failure{e.Reason, chats.Sentence(e.Message)}
	}
	outcome.Messages = emptyList(outcome.Messages)
	return errors.Join(err, st.write(append(jsonOf(outcome), '\n')))
}

// runSelection is the body of a request that stops several runs.
type runSelection struct {
	Thread string   `json:"thread_id"`
	Runs   []string `json:"run_ids"`
	Status string   `json:"status"`
}

// cancelRuns answers POST /runs/cancel: it stops runs of a thread. Without ids, it stops every unfinished run.
func (s *surface) cancelRuns(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in runSelection
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if in.Thread == "" {
		return unsupported("runs are stopped by their thread here; send a thread_id")
	}
	conversation, isFound, err := s.chats.Find(r.Context(), p, in.Thread)
	switch {
	case err != nil:
		return err
	case !isFound:
		return notFound("thread not found")
	case len(in.Runs) == 0:
		if _, err := s.chats.Stop(r.Context(), p, conversation); err != nil {
			return err
		}
	}
	for _, id := range in.Runs {
		ref, _, err := s.lookUpRun(r, p, conversation, id)
		if err != nil {
			return err
		}
		if _, err := server.Do(r.Context(), s.gw, p, conversation, gateway.Command{Type: gateway.CommandStop, Turn: ref.turn}); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
