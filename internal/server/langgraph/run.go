// Runs: what is known of them.

package langgraph

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// Statuses of runs that a client can select. The others have the words for threads.
const (
	statusPending = "pending"
	statusRunning = "running"
)

// runInfo is a run as clients get it.
type runInfo struct {
	ID        string   `json:"run_id"`
	Thread    string   `json:"thread_id"`
	Assistant string   `json:"assistant_id"`
	Status    string   `json:"status"`
	Created   string   `json:"created_at"`
	Updated   string   `json:"updated_at"`
	Metadata  struct{} `json:"metadata"`
	Kwargs    struct{} `json:"kwargs"`
	Multitask string   `json:"multitask_strategy"`
}

// runID returns the id of a run: that of the turn, and for a run that continues it after an answer also the number of the operation.
func runID(turn string, number int64) string {
	if number == 0 {
		return turn
	}
	return turn + "." + strconv.FormatInt(number, 10)
}

// parseRun returns the turn of a run and the number with which the run begins.
func parseRun(id string) (turn string, number int64, ok bool) {
	turn, text, isContinued := strings.Cut(id, ".")
	if !isContinued {
		return turn, 0, true
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return turn, number, err == nil && number > 0
}

// statusOf returns the status of a turn as that of its run. A run that was stopped, or waits for a person, is interrupted in LangGraph.
func statusOf(turn *transcript.Turn) string {
	switch turn.State {
	case transcript.TurnQueued:
		return statusPending
	case transcript.TurnRunning:
		return statusRunning
	case transcript.TurnWaiting:
		return statusInterrupted
	}
	switch turn.Outcome {
	case event.Completed:
		return "success"
	case event.Cancelled:
		return statusInterrupted
	}
	return statusError
}

// runOf returns a turn as a run.
func runOf(id, thread string, turn *transcript.Turn) runInfo {
	created := max(turn.QueuedAt, 0)
	if created == 0 {
		created = turn.StartedAt
	}
	return runInfo{
		ID: id, Thread: thread, Assistant: turn.Agent, Status: statusOf(turn), Multitask: "enqueue",
		Created: timeOf(created), Updated: timeOf(max(created, turn.StartedAt, turn.EndedAt)),
	}
}

// findRun returns the turn of the run in a request's path. If the path has no thread, it gets that of the run, by the id of the conversation.
func (s *surface) findRun(r *http.Request, p gateway.Principal) (ref runRef, turn transcript.Turn, err error) {
	if r.PathValue("id") == "" {
		name, _, _ := parseRun(r.PathValue("turn"))
		thread, _, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, name)
		if err != nil {
			return ref, turn, err
		}
		r.SetPathValue("id", thread)
	}
	conversation, err := s.open(r, p)
	if err != nil {
		return ref, turn, err
	}
	return s.lookUpRun(r, p, conversation, r.PathValue("turn"))
}

// lookUpRun returns the turn of a run.
func (s *surface) lookUpRun(r *http.Request, p gateway.Principal, conversation, id string) (ref runRef, turn transcript.Turn, err error) {
	missing := notFound("run not found")
	name, number, ok := parseRun(id)
	if !ok {
		return ref, turn, missing
	}
	of, turn, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, name)
	switch {
	case err != nil:
		return ref, turn, err
	case of != conversation, turn.EndSeq > 0 && number > turn.EndSeq-turn.FirstSeq: // no run begins after the end of its turn
		return ref, turn, missing
	}
	return runRef{conversation, name, number}, turn, nil
}

func (s *surface) run(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	ref, turn, err := s.findRun(r, p)
	if err != nil {
		return err
	}
	return server.Respond(w, runOf(ref.id(), r.PathValue("id"), &turn), nil)
}

// runs lists the turns of a thread, the newest first.
func (s *surface) runs(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	limit, offset := defaultLimit, 0
	for name, v := range map[string]*int{"limit": &limit, "offset": &offset} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *v, err = strconv.Atoi(text); err != nil || *v < 0 {
			return server.Invalid("invalid %s %q; use a number", name, text)
		}
	}
	list := []runInfo{}
	err = s.gw.ViewTranscript(r.Context(), p, id, func(t *transcript.Transcript) bool {
		list = list[:0]
		for _, turn := range slices.Backward(t.Turns) {
			status := r.URL.Query().Get("status")
			if info := runOf(turn.ID, r.PathValue("id"), turn); turn.Independent() && (status == "" || status == info.Status) {
				list = append(list, info)
			}
		}
		return len(list) >= limit+offset || !t.Earlier
	})
	return server.Respond(w, pageOf(list, &limit, offset), err)
}
