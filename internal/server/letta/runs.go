// Runs.

package letta

import (
	"net/http"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// runState is a run of Letta.
type runState struct {
	ID           string `json:"id"`
	Agent        string `json:"agent_id"`
	Conversation string `json:"conversation_id"`
	// Status is created, running, completed, failed or cancelled.
	Status string `json:"status"`
	Stop   string `json:"stop_reason,omitempty"`
	// Background is always true: it tells clients that they can resume the run.
	Background bool   `json:"background"`
	Created    string `json:"created_at"`
	Completed  string `json:"completed_at,omitempty"`
	// Metadata is nil unless the run has failed.
	Metadata *runMetadata `json:"metadata,omitempty"`
}

// runMetadata has the error of a run, which Letta Code shows its user.
type runMetadata struct {
	Error runError `json:"error"`
}

// runError is an error in the form of the run's list.
type runError struct {
	Type    string `json:"error_type"`
	Message string `json:"message"`
	// Retryable is always false. Letta Code would otherwise send the message again by itself, and the conversation would have it twice.
	Retryable bool `json:"retryable"`
}

// stateOfRun returns a turn as a run.
//
// A turn that waits is a run that has completed with the reason requires_approval.
func stateOfRun(conversation string, t *transcript.Turn) runState {
	r := runState{
		ID: runPrefix + t.ID, Agent: agentPrefix + t.Agent, Conversation: conversationPrefix + conversation, Status: "running", Background: true,
		Created: dateOf(max(t.QueuedAt, t.StartedAt)), Completed: dateOf(t.EndedAt),
	}
	switch {
	case len(t.Requests) > 0:
		r.Status, r.Stop = "completed", stopApproval
	case t.State == transcript.TurnQueued:
		r.Status = "created"
	case t.Unfinished():
	case t.Outcome == event.Completed:
		r.Status, r.Stop = "completed", stopOf(t, false)
	case t.Outcome == event.Cancelled:
		r.Status, r.Stop = "cancelled", stopCancelled
	default:
		r.Status, r.Stop = "failed", stopError
		r.Metadata = &runMetadata{runError{Type: errorType(t), Message: chats.FailureText(t, textInterrupted)}}
	}
	return r
}

// turnOf returns the turn that a path names.
func (s *surface) turnOf(r *http.Request, p gateway.Principal) (conversation string, turn transcript.Turn, err error) {
	return s.gw.Turn(r.Context(), p, gateway.ActionRead, withoutPrefix(r.PathValue("run"), runPrefix))
}

// run answers GET /v1/runs/{run}.
func (s *surface) run(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	conversation, turn, err := s.turnOf(r, p)
	if err != nil {
		return err
	}
	return server.Respond(w, stateOfRun(conversation, &turn), nil)
}

// runMessages answers GET /v1/runs/{run}/messages.
func (s *surface) runMessages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	conversation, turn, err := s.turnOf(r, p)
	if err != nil {
		return err
	}
	return s.list(w, r, p, conversation, turn.ID)
}

// runs answers GET /v1/runs/ with the runs of a conversation, also only those in some states. Without one it is empty: Leat has no list of all turns.
func (s *surface) runs(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	pg, err := pageOf(r, "desc")
	if err != nil {
		return err
	}
	list, statuses := []runState{}, r.URL.Query()["statuses"]
	if id := withoutPrefix(r.URL.Query().Get("conversation_id"), conversationPrefix); id != "" {
		err = s.gw.ViewTranscript(r.Context(), p, id, func(t *transcript.Transcript) bool {
			list = list[:0]
			for _, turn := range t.Turns {
				state := stateOfRun(id, turn)
				if turn.Independent() && (len(statuses) == 0 || slices.Contains(statuses, state.Status)) {
					list = append(list, state)
				}
			}
			return !t.Earlier
		})
	}
	if err != nil {
		return err
	}
	if !pg.isAscending {
		slices.Reverse(list)
	}
	return server.Respond(w, elements(list, pg, func(r *runState) string { return r.ID }), nil)
}

// position is the body of a resume.
type position struct {
	// After is the seq_id of the last frame that the client has; 0 for none.
	After int64 `json:"starting_after"`
	Pings *bool `json:"include_pings"`
	// Run and Otid say which run of a conversation is meant, where the path doesn't. Otid is that of the message that the run answers: a client that
	// lost the response to its message knows nothing else.
	Run  string `json:"run_id"`
	Otid string `json:"otid"`
	// Agent is that of the default conversation.
	Agent string `json:"agent_id"`
}

// resume answers POST /v1/runs/{run}/stream with the frames of a run after one of them.
func (s *surface) resume(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var at position
	if err := server.Decode(r, &at); err != nil {
		return err
	}
	conversation, turn, err := s.turnOf(r, p)
	if err != nil {
		return err
	}
	return s.continueRun(w, r, p, conversation, turn.ID, &at)
}

// attach answers POST /v1/conversations/{conversation}/stream with the frames of a run: the one that the client names, the one that answers the
// client's message, or the newest unfinished one.
func (s *surface) attach(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var at position
	if err := server.Decode(r, &at); err != nil {
		return err
	}
	c, err := s.lookUpDirect(r, p, gateway.ActionRead, at.Agent)
	if err != nil {
		return err
	}
	turn := withoutPrefix(at.Run, runPrefix)
	if turn == "" && at.Otid != "" {
		m, err := s.chats.Message(r.Context(), p, c.ID, at.Otid)
		if err != nil {
			return err
		}
		if m != nil {
			turn = m.Turn
		}
	}
	if turn == "" {
		turns, err := s.chats.Unfinished(r.Context(), p, c.ID)
		if err != nil {
			return err
		}
		if len(turns) == 0 {
			return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no run is active in this conversation")
		}
		turn = turns[len(turns)-1]
	}
	return s.continueRun(w, r, p, c.ID, turn, &at)
}

// continueRun streams the frames of a run after a position.
func (s *surface) continueRun(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, at *position) error {
	if at.After < 0 {
		return server.Invalid("starting_after must not be negative")
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	return s.stream(w, r, p, target{
		conversation: conversation, turn: turn, after: at.After, hasPings: at.Pings == nil || *at.Pings, isAsker: isAsker(r, nil),
	})
}

// cancel answers POST /v1/conversations/{conversation}/cancel.
func (s *surface) cancel(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.lookUp(r, p, gateway.ActionWrite)
	if err != nil {
		return err
	}
	return s.stopTurns(w, r, p, c.ID)
}

// cancelAgent answers POST /v1/agents/{agent}/messages/cancel.
func (s *surface) cancelAgent(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	a, err := s.find(p, r.PathValue("agent"))
	if err != nil {
		return err
	}
	id, isFound, err := s.chats.Find(r.Context(), p, ownChat(a.Name))
	if err != nil || !isFound {
		return server.Respond(w, object{}, err)
	}
	return s.stopTurns(w, r, p, id)
}

// stopTurns stops the unfinished turns of a conversation, and responds with the result of each run.
//
// A request may name runs. They are not read: a conversation has one running turn, and the others wait for it.
func (s *surface) stopTurns(w http.ResponseWriter, r *http.Request, p gateway.Principal, id string) error {
	turns, err := s.chats.Stop(r.Context(), p, id)
	results := map[string]string{}
	for _, turn := range turns {
		results[runPrefix+turn] = "cancelled"
	}
	return server.Respond(w, results, err)
}
