// How runs are stopped: by a request, and by a client that disconnects.

package langgraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// cancelRun answers POST /threads/{id}/runs/{turn}/cancel. The turn has ended when the response comes, also for clients that don't ask to wait.
func (s *surface) cancelRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	ref, _, err := s.findRun(r, p)
	if err != nil {
		return err
	}
	removes, err := removesMessages(r)
	if err != nil {
		return err
	}
	if err := s.stopRun(r.Context(), p, ref, removes); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// runSelection is the body of a request that stops several runs.
type runSelection struct {
	Thread string   `json:"thread_id"`
	Runs   []string `json:"run_ids"`
	Status string   `json:"status"` // pending, running or all
}

// cancelRuns answers POST /runs/cancel: it stops runs of a thread. Without ids, it stops those with a status, or every unfinished one.
func (s *surface) cancelRuns(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in runSelection
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	removes, err := removesMessages(r)
	if err != nil {
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
	}
	turns, err := s.selectTurns(r, p, conversation, &in)
	if err != nil {
		return err
	}
	for _, turn := range slices.Backward(turns) { // the newest first, so that none of the queue starts meanwhile
		if err := s.stopRun(r.Context(), p, runRef{conversation: conversation, turn: turn}, removes); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// selectTurns returns the turns of the runs that a request names, the oldest first. All are looked up before the first one is stopped.
func (s *surface) selectTurns(r *http.Request, p gateway.Principal, conversation string, in *runSelection) (ids []string, err error) {
	firstSeqs := map[string]int64{}
	for _, id := range in.Runs {
		ref, turn, err := s.lookUpRun(r, p, conversation, id)
		if err != nil {
			return nil, err
		}
		firstSeqs[ref.turn] = turn.FirstSeq
	}
	switch in.Status {
	case "", "all", statusPending, statusRunning:
	default:
		return nil, server.Invalid("unknown status %q; use pending, running or all", in.Status)
	}
	if len(in.Runs) == 0 {
		err = s.gw.ViewTranscript(r.Context(), p, conversation, func(t *transcript.Transcript) bool {
			clear(firstSeqs)
			for _, turn := range t.Turns {
				if turn.Unfinished() && turn.Independent() && (in.Status == "" || in.Status == "all" || in.Status == statusOf(turn)) {
					firstSeqs[turn.ID] = turn.FirstSeq
				}
			}
			return true // unfinished turns are in memory
		})
	}
	ids = slices.SortedFunc(maps.Keys(firstSeqs), func(a, b string) int { return cmp.Compare(firstSeqs[a], firstSeqs[b]) })
	return ids, err
}

// removesMessages reads what becomes of a run that is stopped: with the action rollback, its messages are removed.
func removesMessages(r *http.Request) (bool, error) {
	switch action := r.URL.Query().Get("action"); action {
	case "", "interrupt":
		return false, nil
	case "rollback":
		return true, nil
	default:
		return false, server.Invalid("unknown action %q; use interrupt or rollback", action)
	}
}

// stopRun stops the turn of a run, and may remove its messages. A run that has ended already keeps them, because later ones may follow.
func (s *surface) stopRun(ctx context.Context, p gateway.Principal, ref runRef, removes bool) error {
	ack, err := server.Do(ctx, s.gw, p, ref.conversation, gateway.Command{Type: gateway.CommandStop, Turn: ref.turn})
	switch {
	case err != nil || !removes:
		return err
	case ack.AlreadyEnded:
		return server.Errorf(http.StatusConflict, server.ReasonTurnOver, "the run has ended already; only an unfinished run can be rolled back")
	}
	before := ""
	err = s.gw.ViewTranscript(ctx, p, ref.conversation, func(t *transcript.Transcript) bool {
		before = messageBefore(t, ref.turn)
		return true
	})
	if err != nil {
		return err
	}
	return s.chats.Truncate(ctx, p, ref.conversation, before)
}

// stopsJoined reports whether a client that joins a run wants its turn to be stopped when it disconnects. Clients for JavaScript send 1 or 0, and those
// for Python true or false.
func stopsJoined(r *http.Request) (bool, error) {
	text := r.URL.Query().Get("cancel_on_disconnect")
	if text == "" {
		return false, nil
	}
	stopsTurn, err := strconv.ParseBool(text)
	if err != nil {
		return false, server.Invalid("invalid cancel_on_disconnect %q; use true or false", text)
	}
	return stopsTurn, nil
}

// disconnected stops the turn of a client that has disconnected, if the client asked for it. A turn that has ended meanwhile stays as it is.
func (s *surface) disconnected(ctx context.Context, p gateway.Principal, ref runRef, stopsTurn bool) error {
	if !stopsTurn {
		return nil
	}
	if err := s.stopRun(ctx, p, ref, false); err != nil && !errors.Is(err, gateway.ErrNotFound) {
		return fmt.Errorf("stop turn %s of a disconnected client: %w", ref.turn, err)
	}
	return nil
}
