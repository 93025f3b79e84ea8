package openclaw

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// maxConfirm bounds how often a session is read at once until two histories agree on what the run in progress answers.
const maxConfirm = 3

// pairing is a message and the run in progress that seems to answer it.
type pairing struct {
	prompt prompt
	run    string
}

// pageRows is how many rows of a session are read at once; the gateway gives no more.
const pageRows = 1000

// catchUp reads the session and records what happened in it since. unsure says that it has to be read again soon.
func (w *watch) catchUp(ctx context.Context, conn *connection) (unsure bool, err error) {
	var history *sessionHistory
	var g *gatherer
	changed := w.takeUnfinished()
	for confirmed, reads := (pairing{}), 0; reads == 0 || g.guess != (pairing{}) && reads < maxConfirm; reads++ {
		if history, err = w.readRows(ctx, conn); err != nil {
			return false, err
		}
		if w.isNew {
			w.cursor.Seq = w.a.startSeq(w.conversation, history, w.cursor.Unfinished)
		}
		g = &gatherer{w: w, h: history, session: w.session, lastRun: w.cursor.Last, previousGuess: confirmed}
		g.addRows(w.cursor.Seq, "")
		confirmed = g.guess
	}
	at := w.cursor
	at.Seq, at.Last, at.InProgress = max(at.Seq, history.newestSeq()), g.lastRun, g.inProgress(w.cursor.InProgress)
	for _, c := range g.children {
		if !slices.Contains(at.Children, c) {
			at.Children = append(at.Children, c)
		}
	}
	unsure = g.unsure || w.lacksActivity(history)
	at.Children = slices.Clone(at.Children)
	w.mu.Lock()
	for _, c := range at.Children {
		w.children[c.Session] = true
	}
	w.mu.Unlock()
	entries := g.entries
	var openChildren []child
	for _, c := range at.Children {
		childEntries, hasEnded, err := w.gatherChild(ctx, conn, c)
		if err != nil {
			return false, err
		}
		entries = append(entries, childEntries...)
		if !hasEnded {
			openChildren = append(openChildren, c)
		}
	}
	at.Children = openChildren
	if len(g.resumedTurns) > 0 {
		changed = true
		at.Unfinished = slices.DeleteFunc(slices.Clone(at.Unfinished), func(run string) bool { return slices.Contains(g.resumedTurns, run) })
	}
	if len(entries) == 0 && !changed && !w.isNew && at.Seq == w.cursor.Seq && len(at.Children) == len(w.cursor.Children) && slices.Equal(at.InProgress, w.cursor.InProgress) {
		return unsure, nil
	}
	if err := w.recordInOrder(ctx, conn, entries, g.barriers, at); err != nil {
		return false, err
	}
	w.cursor, w.isNew = at, false
	return unsure, nil
}

// read reads the rows behind the cursor, with the message that the row at the cursor answers. A session is read with each run, so a long
// history would keep the gateway busy, and would not pass a connection that is cut often.
func (w *watch) readRows(ctx context.Context, conn *connection) (*sessionHistory, error) {
	if !w.isNew {
		history, err := readHistory(ctx, conn, w.session, endRows)
		if err != nil || len(history.Messages) < endRows || history.explains(w.cursor.Seq) {
			return history, err
		}
	}
	history, err := readHistory(ctx, conn, w.session, historyRows)
	if err != nil || len(history.Messages) < historyRows || history.Messages[0].Meta.Seq <= w.cursor.Seq+1 {
		return history, err
	}
	return readHistory(ctx, conn, w.session, pageRows)
}

// explains reports whether the rows behind a seq can be assigned to their messages: the history has the message that the row at that
// seq answers.
func (h *sessionHistory) explains(seq int64) bool {
	return slices.ContainsFunc(h.Messages, func(r row) bool { return r.Meta.Seq <= seq && r.startsRun() })
}

// begins reports whether a row is a message that begins a run of its own.
func (r *row) startsRun() bool {
	return r.Role == "user" && r.Provenance.Tool != recoveryTool && r.Meta.Steer == ""
}

// child gathers the runs of a session that a run has spawned.
func (w *watch) gatherChild(ctx context.Context, conn *connection, c child) (entries []agent.Entry, hasEnded bool, err error) {
	history, err := readHistory(ctx, conn, c.Session, historyRows)
	if err != nil {
		return nil, false, err
	}
	g := &gatherer{w: w, h: history, session: c.Session, skipMessages: true}
	g.addRows(0, c.Parent)
	return g.entries, len(g.entries) > 0 && !g.hasOpenRun && !g.unsure, nil
}

// startOf returns the seq of the row before the first message of the conversation's turns: what is older was there before it.
func (a *gatewayAgent) startSeq(conversation string, history *sessionHistory, unfinished []string) int64 {
	a.mu.Lock()
	firstMessages := map[string]bool{}
	for _, run := range unfinished {
		firstMessages[run+":user"] = true
	}
	for _, t := range a.turns {
		if t.in.Conversation == conversation {
			firstMessages[t.firstRun()+":user"] = true
		}
	}
	a.mu.Unlock()
	for i := range history.Messages {
		if r := &history.Messages[i]; r.Role == "user" && firstMessages[r.Key] {
			return r.Meta.Seq - 1
		}
	}
	return history.newestSeq()
}

// newest returns the seq of the newest row.
func (h *sessionHistory) newestSeq() (seq int64) {
	for i := range h.Messages {
		seq = max(seq, h.Messages[i].Meta.Seq)
	}
	return seq
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

// operations returns what a run has said that has ended, nil if its rows can't be read.
func (a *gatewayAgent) operations(session, run string, rows []row, end []byte) []event.Event {
	frameOfRows, err := historyFrame(rows, run)
	if err != nil {
		return nil
	}
	d := a.config.Dialect.Decoder()
	var events []event.Event
	for _, frame := range [][]byte{helloFrame(numberedProtocol), sendResponse(run, session), frameOfRows, end} {
		ops, err := d.Decode(dialect.Frame{Data: frame})
		if err != nil {
			return nil
		}
		events = append(events, ops...)
	}
	if len(events) == 0 || events[len(events)-1].Type != event.TurnEnd {
		return nil
	}
	return addUncopiedFiles(events, run, filesOf(rows))
}

// nameFiles names the files of a run that has ended: those in its text, and those that only its rows name. None of them was copied.
func addUncopiedFiles(ops []event.Event, run string, files []historyFile) []event.Event {
	var events []event.Event
	hasMessage := false
	for _, op := range ops {
		op, m := withoutPath(op)
		hasMessage = hasMessage || op.Type == event.MessageStart
		atEnd := op.Type == event.MessageEnd || op.Type == event.TurnEnd
		if atEnd && len(files) > 0 {
			if !hasMessage {
				events = append(events, event.Event{Type: event.MessageStart, Turn: run, Message: run, Body: &event.Body{Role: event.Assistant}})
			}
			for _, f := range files {
				events = append(events, uncopiedFile(run, "file:"+f.id, f.name(), f.MIME)...)
			}
			if !hasMessage {
				events = append(events, event.Event{Type: event.MessageEnd, Turn: run, Message: run})
			}
			files = nil
		}
		events = append(events, op)
		if m != nil && !isWeb(m.Path) {
			if i := matchFile(files, m); i >= 0 {
				files = slices.Delete(files, i, i+1)
			}
			events = append(events, uncopiedFile(run, m.Part, m.Name, op.Body.Media.MIME)[1])
		}
	}
	return events
}

// uncopied shows a file by its name: its part begins, says why it has no address, and ends.
func uncopiedFile(run, part, name, mime string) []event.Event {
	failure := &event.Error{Code: codeFile, Message: name + " was not copied: the run ended before it was read"}
	op := event.Event{Turn: run, Message: run, Part: part}
	begin, update, end := op, op, op
	begin.Type, begin.Body = event.PartStart, &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: name, MIME: mime}}
	update.Type, update.Body = event.PartUpdate, &event.Body{Media: &event.Media{Name: name, MIME: mime, Alt: failure.Message}, Error: failure}
	end.Type = event.PartEnd
	return []event.Event{begin, update, end}
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
