// From the rows of a history to the entries of a follower: each prompt with the run that answers it.

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

// maxConfirm is how often a session is read in a row until two histories agree on what the run in progress answers.
const maxConfirm = 3

// pairing is a message and the run in progress that seems to answer it.
type pairing struct {
	prompt prompt
	run    string
}

// gatherer makes entries from the history of one session. It assigns each run to the message that it answers: rows name their
// run, but not the message, so a run answers the latest message before its first row that no run has answered yet.
type gatherer struct {
	w            *watch
	h            *sessionHistory
	session      string
	skipMessages bool // record runs only
	entries      []agent.Entry
	children     []child
	lastRun      string // key of the previous run
	hasOpenRun   bool   // a run has not ended
	unsure       bool
	// guess is a pairing that one history can't prove: the gateway reads the rows before it looks for the run in progress, so the rows
	// may lack the answer to the message, and the run may answer a later one.
	guess         pairing
	previousGuess pairing // the guess of the previous history; an equal guess is confirmed

	runKeys      []string // keys and ids of the runs that have rows
	barriers     []barrier
	resumedTurns []string // unfinished turns that the entries continue
}

// inProgress returns the keys for cursor.InProgress: the runs that this read records as in progress, and the earlier ones that
// still have no rows.
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

// addRows makes entries of the rows with a higher seq than after. Older rows are read too, because they show which message the
// first new run answers. parent is the key of the run that spawned the session.
//
// The rows are read in their order, oldest first. pending is the latest message that no run has answered; the first row of each
// run takes it. A message of the gateway after a restart continues the previous run under that run's key, unless another message
// waits. A run of a turn that has not begun becomes a barrier, because the turn records that run itself.
//
// The run in progress is last, because all rows are older. It is skipped if a row already names it, if its message is still
// queued, or if a turn of Leat shows it. Without any message that it could answer, it counts as unprompted only after
// followPatience: the gateway may write the message a little later.
func (g *gatherer) addRows(after int64, parent string) {
	var pending prompt // the latest prompt that no run has answered
	seenRuns := map[string]bool{}
	for i := range g.h.Messages {
		r := &g.h.Messages[i]
		old := r.Meta.Seq <= after
		switch {
		case r.Role == "user":
			if r.Provenance.Tool == recoveryTool {
				if pending == (prompt{}) {
					pending = prompt{run: g.lastRun} // the previous run continues
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
		// Its message may not be in the history yet.
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

// spawned matches the keys of spawned sessions in a tool's result, which is JSON or JSON within a JSON string.
var spawned = regexp.MustCompile(`childSessionKey\\*"\s*:\s*\\*"([^"\\]+)`)

// addRun adds an entry for a run: with its events if it has ended, otherwise with the state from which Observe follows it. Runs
// of the conversation's own turns are skipped, because the turn shows them. So are runs whose key is too long for an entry.
//
// A run has ended if its rows contain an end and the gateway lists it neither as in progress nor as active. If its rows can't be
// converted to events, it is recorded like a run in progress, and Observe resolves it. firstRow dates the entry; it is nil for a
// run without rows.
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
		return // the turn has already shown all of it
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

// runKey returns the entry key of a run: the turn's id if Leat started the run, otherwise the run's id.
func runKey(id string) string {
	if turn, _, ok := parseRunID(id); ok {
		return turn
	}
	return id
}

// parseRunID splits the id of a run that a Leat gateway started, see [turn.firstRun] and [nextID].
func parseRunID(id string) (turn, message string, ok bool) {
	turn, message, ok = strings.Cut(id, ".")
	turn, _, _ = strings.Cut(turn, "~") // see nextID
	return turn, message, ok && message != "" && uuid.Validate(turn) == nil
}

// source returns the client or tool that sent a message, or "" if that isn't a valid id.
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
