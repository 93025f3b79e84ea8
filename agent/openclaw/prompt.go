// Which message a run answers. The ids of runs and rows tell, and for runs without a visible prompt their form does.

package openclaw

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// prompt is what a run answers, according to the rows before it. The zero prompt means that no row explains the run.
type prompt struct {
	message   string // key of the message's entry
	run       string // key of the run's entry; empty if the message does not determine it
	source    string // of the run, if no client prompted it
	forwarded bool
}

// promptOf returns the prompt in a user's row. The gateway stores a message under its run's id with the suffix ":user". If Leat
// sent the message, that id also contains the ids of Leat's turn and message, which become the keys of the entries; so the
// gateway of Leat recognizes both. For a schedule the row names the sender, but not the run.
func promptOf(r *row) prompt {
	id, ok := strings.CutSuffix(r.Key, ":user")
	switch {
	case r.Key == "":
		return prompt{message: "row:" + r.Meta.ID}
	case r.forwarded:
		return prompt{message: r.Key, source: r.source(), forwarded: true} // the run of a schedule has another id than its prompt
	case !ok:
		return prompt{message: r.Key}
	}
	if turn, message, ok := parseRunID(id); ok {
		return prompt{message: message, run: turn}
	}
	return prompt{message: r.Key, run: id}
}

// The sources of runs whose prompt no history shows.
const (
	sourceSubagent  = "subagent"
	sourceHeartbeat = "heartbeat"
)

// announcePrefix begins the id of a run in which the gateway informs the agent of the end of a subagent.
const announcePrefix = "announce:"

// hiddenPrompt returns the prompt of a run whose message the gateway hides from all clients: an announcement of a subagent,
// or a heartbeat. firstRow is nil if the run has no rows yet. For other runs the result is the zero prompt.
func hiddenPrompt(run string, firstRow *row) prompt {
	switch {
	case strings.HasPrefix(run, announcePrefix):
		return prompt{source: sourceSubagent}
	case firstRow != nil && firstRow.Meta.Boundary:
		return prompt{source: sourceHeartbeat}
	}
	return prompt{}
}

// isForwarded reports whether a row is a prompt of a schedule or of another session. The gateway stores these as the user's and
// shows them as the assistant's.
func (r *row) isForwarded() bool {
	return r.Meta.Run == "" && (r.Provenance.Kind == "internal_system" && r.Provenance.Tool == "cron" || r.Provenance.Kind == "inter_session" && r.Provenance.Tool == "sessions_send")
}

// shows reports whether a history contains a run.
func (h *sessionHistory) shows(run string) bool {
	return h.InFlight != nil && h.InFlight.Run == run || slices.Contains(h.Info.Runs, run) || slices.ContainsFunc(h.Messages, func(r row) bool { return r.Meta.Run == run })
}

// addMessage adds an entry for a message that starts no turn of Leat. A message that the gateway forwards gets the role system.
// An assistant's message without a run was injected by a client. Rows without a usable key are left out, because they could be
// recorded twice.
func (g *gatherer) addMessage(r *row) {
	if g.skipMessages {
		return
	}
	e := agent.Entry{Key: promptOf(r).message, Source: r.source()}
	m := &agent.Message{Role: event.User, Text: visibleText(r.text())}
	switch {
	case r.forwarded:
		m.Role = event.System // it comes neither from a user nor from the agent
	case r.Role != "user":
		e.Key, e.Source, m.Role = "row:"+r.Meta.ID, "inject", event.Assistant
	}
	e.At, e.Message = r.writtenAt(), m
	if len(e.Key) <= agent.MaxKey && e.Key != "row:" {
		g.entries = append(g.entries, e)
	}
}
