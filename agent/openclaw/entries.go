package openclaw

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// maxConfirm bounds how often a session is read at once until two histories agree on what the run in progress answers.
const maxConfirm = 3

// pairing is a message and the run in progress that seems to answer it.
type pairing struct {
	prompt prompt
	run    string
}

// gathering makes entries of a history.
type gatherer struct {
	w            *watch
	h            *sessionHistory
	session      string
	skipMessages bool // messages are left out
	entries      []agent.Entry
	children     []child
	lastRun      string // key of the run before
	hasOpenRun   bool   // a run has not ended
	unsure       bool
	// doubt is what one history alone does not prove: the gateway reads the rows before it looks for a run in progress, so the rows may lack
	// the answer to the message, and the run may answer a later one.
	guess         pairing
	previousGuess pairing // the doubt of the history before

	runKeys      []string // keys of the runs that have rows
	barriers     []barrier
	resumedTurns []string // unfinished turns that the entries continue
}

// inProgress returns the keys of the runs that are recorded as runs in progress and have no rows yet.
func (g *gatherer) inProgress(before []string) (keys []string) {
	for _, e := range g.entries {
		if e.Run != nil && e.Run.Ops == nil {
			keys = append(keys, e.Key)
		}
	}
	for _, key := range before {
		if !slices.Contains(g.runKeys, key) && !slices.Contains(keys, key) && len(keys) < maxBuffered {
			keys = append(keys, key)
		}
	}
	return keys
}

// rows goes through the rows behind a seq. parent is the key of the run that spawned the session.
func (g *gatherer) addRows(after int64, parent string) {
	var pending prompt // that no run has answered yet
	seenRuns := map[string]bool{}
	for i := range g.h.Messages {
		r := &g.h.Messages[i]
		old := r.Meta.Seq <= after
		switch {
		case r.Role == "user":
			if r.Provenance.Tool == recoveryTool {
				if pending == (prompt{}) {
					pending = prompt{run: g.lastRun} // the run before goes on
				}
				continue
			}
			if r.startsRun() {
				pending = promptOf(r)
			}
			if !old {
				g.addMessage(r)
			}
		case r.Meta.Run == "" && r.Abort == nil && r.Role == "assistant":
			if !old {
				g.addMessage(r)
			}
		case r.Meta.Run != "" && !seenRuns[r.Meta.Run]:
			seenRuns[r.Meta.Run] = true
			origin := hiddenPrompt(r.Meta.Run, r)
			if origin == (prompt{}) {
				origin, pending = pending, prompt{}
			}
			g.lastRun = cmp.Or(origin.run, runKey(r.Meta.Run))
			g.runKeys = append(g.runKeys, g.lastRun, r.Meta.Run)
			if begins := cmp.Or(g.w.unbegunTurn(g.lastRun), g.w.unbegunTurn(r.Meta.Run)); begins != nil {
				g.barriers = append(g.barriers, barrier{len(g.entries), g.lastRun, begins})
			} else if !old || g.w.cursor.unfinishedTurn(g.lastRun) != "" {
				g.addRun(r.Meta.Run, g.lastRun, parent, origin, r)
			}
		}
		if r.Role == "toolResult" && !old {
			for _, key := range spawned.FindAllStringSubmatch(string(r.Content), -1) {
				g.children = append(g.children, child{Session: key[1], Parent: g.lastRun})
			}
		}
	}
	f := g.h.InFlight
	if f == nil || seenRuns[f.Run] || g.h.isQueued(f.Run) || g.w.a.ownsRun(g.w.conversation, f.Run) {
		return
	}
	if origin := hiddenPrompt(f.Run, nil); origin != (prompt{}) {
		pending = origin
	} else if pending.run == "" && !pending.forwarded && g.h.promptIndex(runQuery{run: f.Run, protocol: numberedProtocol}) < 0 {
		// Its message may not be written yet.
		since, ok := g.w.unexplainedSince[f.Run]
		if !ok {
			since = time.Now()
			g.w.unexplainedSince[f.Run] = since
		}
		if time.Since(since) < followPatience {
			g.unsure, g.hasOpenRun = true, true
			return
		}
		pending = prompt{}
	}
	if p := (pairing{pending, f.Run}); pending.message != "" && pending.run != runKey(f.Run) && p != g.previousGuess {
		g.guess = p
		g.unsure, g.hasOpenRun = true, true
		return
	}
	g.lastRun = cmp.Or(pending.run, runKey(f.Run))
	g.addRun(f.Run, g.lastRun, parent, pending, nil)
}

// spawned finds the sessions that a tool's result names.
var spawned = regexp.MustCompile(`childSessionKey\\*"\s*:\s*\\*"([^"\\]+)`)

// run adds a run: what it said if it has ended, or else one that is to be observed.
func (g *gatherer) addRun(id, key, parent string, origin prompt, firstRow *row) {
	if len(key) > agent.MaxKey || g.w.a.ownsRun(g.w.conversation, id) {
		return
	}
	e := agent.Entry{Key: key, Source: origin.source, Run: &agent.Run{Answers: origin.message, Parent: parent}}
	if firstRow != nil {
		e.At = firstRow.writtenAt()
	}
	rows := g.h.rowsOf(runQuery{run: id, protocol: numberedProtocol})
	end := endFrame(g.session, id, rows, numberedProtocol)
	isOver := (g.h.InFlight == nil || g.h.InFlight.Run != id) && !slices.Contains(g.h.Info.Runs, id)
	if isOver && (end == nil || aborted(rows)) && g.w.cursor.unfinishedTurn(key) != "" {
		return // the turn has shown what there is
	}
	g.linkUnfinished(&e, id)
	if end != nil && isOver {
		if ops := g.w.a.operations(g.session, id, rows, end); ops != nil {
			e.Run.Ops = ops
			g.entries = append(g.entries, e)
			return
		}
	}
	g.hasOpenRun = true
	st := turnState{Session: g.session, Runs: []*run{{ID: id, IsSent: true, IsAccepted: true, IsLive: true, SentAt: time.Now().UnixMilli()}}}
	e.Run.State = mustJSON(&st)
	g.entries = append(g.entries, e)
}

// aborted reports whether a run was stopped.
func aborted(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.Abort != nil })
}

// runKey returns the key of the entry of a run.
func runKey(id string) string {
	if turn, _, ok := parseRunID(id); ok {
		return turn
	}
	return id
}

// ownRun takes apart the id of a run that a gateway of Leat has named, see [Agent.firstRun].
func parseRunID(id string) (turn, message string, ok bool) {
	turn, message, ok = strings.Cut(id, ".")
	turn, _, _ = strings.Cut(turn, "~") // see nextID
	return turn, message, ok && message != "" && uuid.Validate(turn) == nil
}

// source returns where a message came from.
func (r *row) source() string {
	source := r.Provenance.Tool
	if len(r.Meta.Transport.Clients) > 0 {
		source = r.Meta.Transport.Clients[0].ID
	}
	if event.CheckID("source", source) != nil {
		return ""
	}
	return source
}
