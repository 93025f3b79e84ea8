package openclaw

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// prompt is what a run answers, as the rows before the run show it. The zero prompt is that of a run which no row explains.
type prompt struct {
	message   string // key of the message's entry
	run       string // key of the run's entry; empty if the message does not determine it
	source    string // of the run, if no client asked for it
	forwarded bool
}

// promptOf returns the prompt that a user's row is. Messages that Leat sent have the ids of their turn and of themselves in them, so that
// the gateway recognizes them.
func promptOf(r *row) prompt {
	id, ok := strings.CutSuffix(r.Key, ":user")
	switch {
	case r.Key == "":
		return prompt{message: "row:" + r.Meta.ID}
	case r.forwarded:
		return prompt{message: r.Key, source: r.source(), forwarded: true} // a schedule's run has another id than its prompt
	case !ok:
		return prompt{message: r.Key}
	}
	if turn, message, ok := parseRunID(id); ok {
		return prompt{message: message, run: turn}
	}
	return prompt{message: r.Key, run: id}
}

// Sources of runs that have no prompt which a history shows.
const (
	sourceSubagent  = "subagent"
	sourceHeartbeat = "heartbeat"
)

// announcement begins the id of the run in which an agent hears that a subagent has ended.
const announcePrefix = "announce:"

// hidden returns the prompt of a run whose message the gateway shows to nobody. first is the run's first row, nil if it has none yet.
func hiddenPrompt(run string, firstRow *row) prompt {
	switch {
	case strings.HasPrefix(run, announcePrefix):
		return prompt{source: sourceSubagent}
	case firstRow != nil && firstRow.Meta.Boundary:
		return prompt{source: sourceHeartbeat}
	}
	return prompt{}
}

// isForwarded reports whether a row is a prompt of a schedule or of another session. The gateway stores these as the user's, and shows
// them as the assistant's.
func (r *row) isForwarded() bool {
	return r.Meta.Run == "" && (r.Provenance.Kind == "internal_system" && r.Provenance.Tool == "cron" || r.Provenance.Kind == "inter_session" && r.Provenance.Tool == "sessions_send")
}

// names reports whether a history shows a run.
func (h *sessionHistory) shows(run string) bool {
	return h.InFlight != nil && h.InFlight.Run == run || slices.Contains(h.Info.Runs, run) || slices.ContainsFunc(h.Messages, func(r row) bool { return r.Meta.Run == run })
}

// message adds a message.
func (g *gatherer) addMessage(r *row) {
	if g.skipMessages {
		return
	}
	e := agent.Entry{Key: promptOf(r).message, Source: r.source()}
	m := &agent.Message{Role: event.User, Text: visibleText(r.text())}
	switch {
	case r.forwarded:
		m.Role = event.System // neither a person nor the agent said it
	case r.Role != "user":
		e.Key, e.Source, m.Role = "row:"+r.Meta.ID, "inject", event.Assistant
	}
	e.At, e.Message = r.writtenAt(), m
	if len(e.Key) <= agent.MaxKey && e.Key != "row:" {
		g.entries = append(g.entries, e)
	}
}
