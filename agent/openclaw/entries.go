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
	asked prompt
	run   string
}

// pageRows is how many rows of a session are read at once; the gateway gives no more.
const pageRows = 1000

// catchUp reads the session and records what happened in it since. unsure says that it has to be read again soon.
func (w *watch) catchUp(ctx context.Context, l *link) (unsure bool, err error) {
	var h *history
	var g *gathering
	changed := w.takeUnfinished()
	for confirmed, reads := (pairing{}), 0; reads == 0 || g.doubt != (pairing{}) && reads < maxConfirm; reads++ {
		if h, err = w.read(ctx, l); err != nil {
			return false, err
		}
		if w.fresh {
			w.at.Seq = w.a.startOf(w.conversation, h, w.at.Unfinished)
		}
		g = &gathering{w: w, h: h, session: w.session, last: w.at.Last, confirmed: confirmed}
		g.rows(w.at.Seq, "")
		confirmed = g.doubt
	}
	at := w.at
	at.Seq, at.Last, at.Live = max(at.Seq, h.newest()), g.last, g.inProgress(w.at.Live)
	for _, c := range g.children {
		if !slices.Contains(at.Children, c) {
			at.Children = append(at.Children, c)
		}
	}
	unsure = g.unsure || w.ahead(h)
	at.Children = slices.Clone(at.Children)
	w.mu.Lock()
	for _, c := range at.Children {
		w.children[c.Session] = true
	}
	w.mu.Unlock()
	entries := g.entries
	var left []child
	for _, c := range at.Children {
		more, over, err := w.child(ctx, l, c)
		if err != nil {
			return false, err
		}
		entries = append(entries, more...)
		if !over {
			left = append(left, c)
		}
	}
	at.Children = left
	if len(g.resumed) > 0 {
		changed = true
		at.Unfinished = slices.DeleteFunc(slices.Clone(at.Unfinished), func(first string) bool { return slices.Contains(g.resumed, first) })
	}
	if len(entries) == 0 && !changed && !w.fresh && at.Seq == w.at.Seq && len(at.Children) == len(w.at.Children) && slices.Equal(at.Live, w.at.Live) {
		return unsure, nil
	}
	if err := w.record(ctx, l, entries, g.barriers, at); err != nil {
		return false, err
	}
	w.at, w.fresh = at, false
	return unsure, nil
}

// read reads the rows behind the cursor, with the message that the row at the cursor answers. A session is read with each run, so a long
// history would keep the gateway busy, and would not pass a connection that is cut often.
func (w *watch) read(ctx context.Context, l *link) (*history, error) {
	if !w.fresh {
		h, err := readHistory(ctx, l, w.session, endRows)
		if err != nil || len(h.Messages) < endRows || h.explains(w.at.Seq) {
			return h, err
		}
	}
	h, err := readHistory(ctx, l, w.session, historyRows)
	if err != nil || len(h.Messages) < historyRows || h.Messages[0].Meta.Seq <= w.at.Seq+1 {
		return h, err
	}
	return readHistory(ctx, l, w.session, pageRows)
}

// explains reports whether the rows behind a seq can be assigned to their messages: the history has the message that the row at that
// seq answers.
func (h *history) explains(seq int64) bool {
	return slices.ContainsFunc(h.Messages, func(r row) bool { return r.Meta.Seq <= seq && r.begins() })
}

// begins reports whether a row is a message that begins a run of its own.
func (r *row) begins() bool {
	return r.Role == "user" && r.Provenance.Tool != recovery && r.Meta.Steer == ""
}

// child gathers the runs of a session that a run has spawned.
func (w *watch) child(ctx context.Context, l *link, c child) (entries []agent.Entry, over bool, err error) {
	h, err := readHistory(ctx, l, c.Session, historyRows)
	if err != nil {
		return nil, false, err
	}
	g := &gathering{w: w, h: h, session: c.Session, silent: true}
	g.rows(0, c.Parent)
	return g.entries, len(g.entries) > 0 && !g.live && !g.unsure, nil
}

// startOf returns the seq of the row before the first message of the conversation's turns: what is older was there before it.
func (a *Agent) startOf(conversation string, h *history, unfinished []string) int64 {
	a.mu.Lock()
	own := map[string]bool{}
	for _, first := range unfinished {
		own[first+":user"] = true
	}
	for _, t := range a.turns {
		if t.in.Conversation == conversation {
			own[t.firstRun()+":user"] = true
		}
	}
	a.mu.Unlock()
	for i := range h.Messages {
		if r := &h.Messages[i]; r.Role == "user" && own[r.Key] {
			return r.Meta.Seq - 1
		}
	}
	return h.newest()
}

// newest returns the seq of the newest row.
func (h *history) newest() (seq int64) {
	for i := range h.Messages {
		seq = max(seq, h.Messages[i].Meta.Seq)
	}
	return seq
}

// gathering makes entries of a history.
type gathering struct {
	w        *watch
	h        *history
	session  string
	silent   bool // messages are left out
	entries  []agent.Entry
	children []child
	last     string // key of the run before
	live     bool   // a run has not ended
	unsure   bool
	// doubt is what one history alone does not prove: the gateway reads the rows before it looks for a run in progress, so the rows may lack
	// the answer to the message, and the run may answer a later one.
	doubt     pairing
	confirmed pairing // the doubt of the history before

	said     []string // keys of the runs that have rows
	barriers []barrier
	resumed  []string // unfinished turns that the entries continue
}

// inProgress returns the keys of the runs that are recorded as runs in progress and have no rows yet.
func (g *gathering) inProgress(before []string) (keys []string) {
	for _, e := range g.entries {
		if e.Run != nil && e.Run.Ops == nil {
			keys = append(keys, e.Key)
		}
	}
	for _, key := range before {
		if !slices.Contains(g.said, key) && !slices.Contains(keys, key) && len(keys) < maxBuffered {
			keys = append(keys, key)
		}
	}
	return keys
}

// rows goes through the rows behind a seq. parent is the key of the run that spawned the session.
func (g *gathering) rows(after int64, parent string) {
	var asked prompt // that no run has answered yet
	done := map[string]bool{}
	for i := range g.h.Messages {
		r := &g.h.Messages[i]
		old := r.Meta.Seq <= after
		switch {
		case r.Role == "user":
			if r.Provenance.Tool == recovery {
				if asked == (prompt{}) {
					asked = prompt{run: g.last} // the run before goes on
				}
				continue
			}
			if r.begins() {
				asked = promptOf(r)
			}
			if !old {
				g.message(r)
			}
		case r.Meta.Run == "" && r.Abort == nil && r.Role == "assistant":
			if !old {
				g.message(r)
			}
		case r.Meta.Run != "" && !done[r.Meta.Run]:
			done[r.Meta.Run] = true
			by := hidden(r.Meta.Run, r)
			if by == (prompt{}) {
				by, asked = asked, prompt{}
			}
			g.last = cmp.Or(by.run, runKey(r.Meta.Run))
			g.said = append(g.said, g.last, r.Meta.Run)
			if begins := cmp.Or(g.w.notBegun(g.last), g.w.notBegun(r.Meta.Run)); begins != nil {
				g.barriers = append(g.barriers, barrier{len(g.entries), g.last, begins})
			} else if !old || g.w.at.unfinishedTurn(g.last) != "" {
				g.run(r.Meta.Run, g.last, parent, by, r)
			}
		}
		if r.Role == "toolResult" && !old {
			for _, key := range spawned.FindAllStringSubmatch(string(r.Content), -1) {
				g.children = append(g.children, child{Session: key[1], Parent: g.last})
			}
		}
	}
	f := g.h.InFlight
	if f == nil || done[f.Run] || g.h.queued(f.Run) || g.w.a.owns(g.w.conversation, f.Run) {
		return
	}
	if by := hidden(f.Run, nil); by != (prompt{}) {
		asked = by
	} else if asked.run == "" && !asked.forwarded && g.h.user(question{run: f.Run, protocol: numbered}) < 0 {
		// Its message may not be written yet.
		since, ok := g.w.puzzled[f.Run]
		if !ok {
			since = time.Now()
			g.w.puzzled[f.Run] = since
		}
		if time.Since(since) < followPatience {
			g.unsure, g.live = true, true
			return
		}
		asked = prompt{}
	}
	if p := (pairing{asked, f.Run}); asked.message != "" && asked.run != runKey(f.Run) && p != g.confirmed {
		g.doubt = p
		g.unsure, g.live = true, true
		return
	}
	g.last = cmp.Or(asked.run, runKey(f.Run))
	g.run(f.Run, g.last, parent, asked, nil)
}

// spawned finds the sessions that a tool's result names.
var spawned = regexp.MustCompile(`childSessionKey\\*"\s*:\s*\\*"([^"\\]+)`)

// run adds a run: what it said if it has ended, or else one that is to be observed.
func (g *gathering) run(id, key, parent string, by prompt, first *row) {
	if len(key) > agent.MaxKey || g.w.a.owns(g.w.conversation, id) {
		return
	}
	e := agent.Entry{Key: key, Source: by.source, Run: &agent.Run{Answers: by.message, Parent: parent}}
	if first != nil {
		e.At = first.at()
	}
	rows := g.h.of(question{run: id, protocol: numbered})
	end := ending(g.session, id, rows, numbered)
	over := (g.h.InFlight == nil || g.h.InFlight.Run != id) && !slices.Contains(g.h.Info.Runs, id)
	if over && (end == nil || aborted(rows)) && g.w.at.unfinishedTurn(key) != "" {
		return // the turn has shown what there is
	}
	g.continues(&e, id)
	if end != nil && over {
		if ops := g.w.a.operations(g.session, id, rows, end); ops != nil {
			e.Run.Ops = ops
			g.entries = append(g.entries, e)
			return
		}
	}
	g.live = true
	st := turnState{Session: g.session, Runs: []*run{{ID: id, Sent: true, Taken: true, Live: true, At: time.Now().UnixMilli()}}}
	e.Run.State = mustJSON(&st)
	g.entries = append(g.entries, e)
}

// aborted reports whether a run was stopped.
func aborted(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.Abort != nil })
}

// operations returns what a run has said that has ended, nil if its rows can't be read.
func (a *Agent) operations(session, run string, rows []row, end []byte) []event.Event {
	named, err := named(rows, run)
	if err != nil {
		return nil
	}
	d := a.cfg.Dialect.Decoder()
	var all []event.Event
	for _, frame := range [][]byte{greeting(numbered), known(run, session), named, end} {
		ops, err := d.Decode(dialect.Frame{Data: frame})
		if err != nil {
			return nil
		}
		all = append(all, ops...)
	}
	if len(all) == 0 || all[len(all)-1].Type != event.TurnEnd {
		return nil
	}
	return nameFiles(all, run, pictures(rows))
}

// nameFiles names the files of a run that has ended: those in its text, and those that only its rows name. None of them was copied.
func nameFiles(ops []event.Event, run string, files []picture) []event.Event {
	var all []event.Event
	begun := false
	for _, op := range ops {
		op, m := mediaStarts(op)
		begun = begun || op.Type == event.MessageStart
		over := op.Type == event.MessageEnd || op.Type == event.TurnEnd
		if over && len(files) > 0 {
			if !begun {
				all = append(all, event.Event{Type: event.MessageStart, Turn: run, Message: run, Body: &event.Body{Role: event.Assistant}})
			}
			for _, f := range files {
				all = append(all, uncopied(run, "file:"+f.id, f.name(), f.MIME)...)
			}
			if !begun {
				all = append(all, event.Event{Type: event.MessageEnd, Turn: run, Message: run})
			}
			files = nil
		}
		all = append(all, op)
		if m != nil && !isWeb(m.Path) {
			if i := match(files, m); i >= 0 {
				files = slices.Delete(files, i, i+1)
			}
			all = append(all, uncopied(run, m.Part, m.Name, op.Body.Media.MIME)[1])
		}
	}
	return all
}

// uncopied shows a file by its name: its part begins, says why it has no address, and ends.
func uncopied(run, part, name, mime string) []event.Event {
	why := &event.Error{Code: codeFile, Message: name + " was not copied: the run ended before it was read"}
	op := event.Event{Turn: run, Message: run, Part: part}
	begin, update, end := op, op, op
	begin.Type, begin.Body = event.PartStart, &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: name, MIME: mime}}
	update.Type, update.Body = event.PartUpdate, &event.Body{Media: &event.Media{Name: name, MIME: mime, Alt: why.Message}, Error: why}
	end.Type = event.PartEnd
	return []event.Event{begin, update, end}
}

// runKey returns the key of the entry of a run.
func runKey(id string) string {
	if turn, _, ok := ownRun(id); ok {
		return turn
	}
	return id
}

// ownRun takes apart the id of a run that a gateway of Leat has named, see [Agent.firstRun].
func ownRun(id string) (turn, message string, ok bool) {
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
