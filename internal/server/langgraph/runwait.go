// Requests that wait for the end of a run.

package langgraph

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
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
	stopsTurn, err := stopsJoined(r)
	if err != nil {
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	return s.wait(w, r, p, ref, stopsTurn)
}

// wait waits for the end of a run. Line feeds before the JSON keep the connection alive.
func (s *surface) wait(w http.ResponseWriter, r *http.Request, p gateway.Principal, ref runRef, stopsTurn bool) error {
	st := follow.OpenStream(s.srv, s.viewers, w, r, "application/json", "\n")
	defer st.Close()
	if st.Head() {
		return nil
	}
	outcome := &runOutcome{}
	events := newRunWriter(map[string]bool{}, ref, "", -1, s.loader(r.Context(), p, ref))
	events.outcome = outcome
	err := s.followRun(r.Context(), p, events, st, func([]byte) error { return nil })
	isExpected := true
	switch cause := context.Cause(r.Context()); {
	case err == nil:
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler) // the status was sent, so only a broken connection tells the client that the result is missing
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, ref, stopsTurn)
	default:
		var f failure
		f, isExpected = failureIn(err)
		outcome.Error = &f
	}
	outcome.Messages = emptyList(outcome.Messages)
	if isExpected {
		err = nil
	}
	return errors.Join(err, st.Write(append(jsonOf(outcome), '\n')))
}
