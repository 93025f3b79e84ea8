// Stops.

package openclaw

import (
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// abortParams are the parameters of chat.abort. Without a run, all runs of the session are stopped.
type abortParams struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	RunID      string `json:"runId"`
}

// abortAck is the response to chat.abort.
type abortAck struct {
	OK      bool     `json:"ok"`
	Aborted bool     `json:"aborted"` // a run was stopped
	RunIDs  []string `json:"runIds"`
}

// summary tells the user what a stop did.
func (a *abortAck) summary() string {
	if a.Aborted {
		return "stopped"
	}
	return "nothing is running"
}

// abort answers chat.abort.
func (c *connection) abort(p *abortParams) (any, error) { return c.stop(p) }

// stop stops runs. The events of their ends come before it returns.
func (c *connection) stop(p *abortParams) (*abortAck, error) {
	k, err := c.parseKey(p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
	}
	result := &abortAck{OK: true, RunIDs: []string{}}
	conversation, err := c.find(c.ctx, k)
	if conversation == nil || err != nil {
		return result, err
	}
	turns, err := c.unfinishedRuns(conversation.ID, p.RunID)
	if err != nil {
		return nil, err
	}
	s, err := c.attach(k, conversation.ID)
	if err != nil {
		return nil, err
	}
	// Those in the queue are stopped first, so that none of them starts meanwhile.
	for _, turn := range slices.Backward(turns) {
		ack, err := c.do(conversation.ID, gateway.Command{Type: gateway.CommandStop, Turn: turn.turn})
		if err != nil {
			return nil, err
		}
		if !ack.AlreadyEnded {
			result.RunIDs = append(result.RunIDs, turn.run)
		}
	}
	result.Aborted = len(result.RunIDs) > 0
	return result, s.syncNow()
}

// runTurn is a run and its turn.
type runTurn struct{ run, turn string }

// unfinishedRuns returns the unfinished runs of a conversation, or the one with an id. A message that joined a running turn has that turn.
func (c *connection) unfinishedRuns(conversation, id string) (runs []runTurn, err error) {
	err = c.s.gw.ViewTranscript(c.ctx, c.principal(), conversation, func(t *transcript.Transcript) bool {
		runs = nil
		hostTurn := ""
		if m := t.Message(id); id != "" && m != nil {
			hostTurn = m.StateTurn
		}
		for _, turn := range t.Turns {
			run := runID(t, turn)
			if turn.Unfinished() && turn.Independent() && (id == "" || id == run || hostTurn == turn.ID) {
				runs = append(runs, runTurn{run, turn.ID})
			}
		}
		return true
	})
	return runs, err
}
