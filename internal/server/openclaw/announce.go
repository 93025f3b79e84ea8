// session.message: the messages of a session as they are added.

package openclaw

import "github.com/leat-dev/leat/transcript"

// sessionMessage is the payload of session.message. At the end of a run it has no message, only that the history is complete.
type sessionMessage struct {
	SessionKey   string   `json:"sessionKey"`
	AgentID      string   `json:"agentId"`
	SessionID    string   `json:"sessionId"`
	Message      *message `json:"message,omitempty"`
	MessageID    string   `json:"messageId,omitempty"`
	MessageSeq   int64    `json:"messageSeq,omitempty"` // the number of its row
	RunID        string   `json:"runId,omitempty"`
	HasActiveRun bool     `json:"hasActiveRun"`
	ActiveRunIDs []string `json:"activeRunIds"`
	UpdatedAt    int64    `json:"updatedAt"` // epoch milliseconds
}

// messageEvent reports a message of the user.
func (s *session) messageEvent(t *transcript.Transcript, m *transcript.Message) queued {
	row := userRow(m)
	active := activeRuns(t)
	return queued{name: "session.message", payload: sessionMessage{
		s.key.full, s.key.agent, s.conversation, &row, m.ID, row.Meta.Seq, runOfMessage(m), len(active) > 0, active, m.At,
	}}
}

// endedEvent reports that the rows of a run are complete.
func (s *session) endedEvent(t *transcript.Transcript, r *run, turn *transcript.Turn) queued {
	active := activeRuns(t)
	return queued{name: "session.message", payload: sessionMessage{
		SessionKey: s.key.full, AgentID: s.key.agent, SessionID: s.conversation, RunID: r.id, HasActiveRun: len(active) > 0, ActiveRunIDs: active,
		UpdatedAt: turn.EndedAt,
	}}
}

// activeRuns returns the ids of the unfinished runs.
func activeRuns(t *transcript.Transcript) []string {
	active := []string{}
	for _, turn := range t.Turns {
		if turn.Unfinished() && turn.Independent() {
			active = append(active, runID(t, turn))
		}
	}
	return active
}

// runID returns the id of a turn's run.
func runID(t *transcript.Transcript, turn *transcript.Turn) string {
	if m := t.Message(turn.Answers); m != nil && m.Source == source {
		return m.ID
	}
	return turn.ID
}

// runOfMessage returns the run that a message of the user began, or "".
func runOfMessage(m *transcript.Message) string {
	if m.Source == source {
		return m.ID
	}
	return m.StateTurn
}
