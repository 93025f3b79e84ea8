package openclaw

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
)

// route hands a frame to those that it concerns. It never waits.
func (a *gatewayAgent) route(conn *connection, raw []byte, f *frame) {
	if conn.gap(f) {
		a.eachTurn(func(t *turn) { t.post(item{kind: itemGap}) })
	}
	switch f.Event {
	case "agent", "chat":
		a.runEvent(raw, f)
	case "exec.approval.requested", "plugin.approval.requested":
		a.approvalRequested(f)
	case "exec.approval.resolved", "plugin.approval.resolved":
		a.approvalResolved(f)
	case "shutdown":
		var s struct {
			After int64 `json:"restartExpectedMs"`
		}
		_ = json.Unmarshal(f.Payload, &s) // without a time there is none
		conn.noteShutdown(time.Duration(s.After) * time.Millisecond)
	}
}

// runEvent hands on what a run says: by its run; where that is not known, by its session, since it may be one that goes on
// with a run that was interrupted; and by the session that spawned its own.
func (a *gatewayAgent) runEvent(raw []byte, f *frame) {
	var r runFrame
	if json.Unmarshal(f.Payload, &r) != nil {
		return
	}
	a.mu.Lock()
	t := a.runs[r.Run]
	if t == nil && r.Session != "" {
		t = a.sessions[r.Session]
	}
	isFollowed := a.offerToWatches(raw, &r)
	observers := slices.Clone(a.observers[r.Run])
	if t == nil && r.SpawnedBy != "" && !isFollowed {
		if t = a.sessions[r.SpawnedBy]; t != nil && r.Session != "" {
			a.sessions[r.Session] = t
			t.children = append(t.children, r.Session)
		}
	}
	a.mu.Unlock()
	if t != nil {
		observers = append(observers, t)
	}
	for _, t := range observers {
		t.post(item{kind: itemFrame, raw: raw, run: r})
	}
}

// each calls f for all turns.
func (a *gatewayAgent) eachTurn(f func(*turn)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.turns {
		f(t)
	}
}

// firstRun returns the id of the run that the turn begins with: it names the turn and its message, so that both are known again in the
// session's history.
func (t *turn) firstRun() string {
	if len(t.st.Runs) > 0 {
		return t.st.Runs[0].ID
	}
	if id := t.in.Key + "." + t.in.Message.ID; t.in.Message.ID != "" && event.CheckID("run", id) == nil {
		return id
	}
	return t.in.Key
}

// register makes frames of the turn's session and runs find it. A session runs one turn at a time: what is sent beside another
// would become a part of that one's answer. So a turn that was not sent yet waits, and is told where it has to.
func (a *gatewayAgent) register(ctx context.Context, t *turn, waits func()) error {
	keepAlive := time.NewTicker(waitSign)
	defer keepAlive.Stop()
	for {
		a.mu.Lock()
		before := a.sessions[t.session]
		if before == nil || t.isSent() {
			a.turns[t.in.Turn] = t
			t.trackBeginning()
			if before == nil {
				a.sessions[t.session] = t
			}
			for _, r := range t.st.Runs {
				a.runs[r.ID] = t
			}
			a.mu.Unlock()
			return nil
		}
		a.mu.Unlock()
		if waits != nil {
			waits()
			waits = nil
		}
		select {
		case <-before.finished:
		case <-keepAlive.C:
			t.emitter.ReportProgress()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waitSign is how often a turn that waits for its session says that it is there.
const waitSign = 10 * time.Second

// unregister undoes it. Where somebody else has ended the turn, it notes what Stop has to end.
func (a *gatewayAgent) unregister(t *turn, endedElsewhere bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(t.finished)
	delete(a.turns, t.in.Turn)
	t.markBegun()
	if !t.isObserved {
		delete(a.beginnings, turnKey{t.in.Conversation, t.in.Key}) // no entry is ever made of it
	}
	for _, key := range append(t.children, t.session) {
		if a.sessions[key] == t {
			delete(a.sessions, key)
		}
	}
	for id, of := range a.observers {
		if of = slices.DeleteFunc(of, func(o *turn) bool { return o == t }); len(of) > 0 {
			a.observers[id] = of
		} else {
			delete(a.observers, id)
		}
	}
	for id, of := range a.runs {
		if of == t {
			delete(a.runs, id)
		}
	}
	if !endedElsewhere {
		return
	}
	p := stopTarget{session: t.session, firstRun: t.firstOrKey()}
	for _, r := range t.st.Runs {
		if r.IsSent {
			p.runs = append(p.runs, r.ID)
		}
	}
	a.stopTargets[t.in.Turn] = p
}
