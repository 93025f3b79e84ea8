// Which turn or watch gets a frame. Frames name their run and session, and runs are registered under both.

package openclaw

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
)

// route hands an event to the turns that it concerns. It runs on the connection's reading goroutine and never blocks.
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
		_ = json.Unmarshal(f.Payload, &s) // without a readable time it is 0, unknown
		conn.noteShutdown(time.Duration(s.After) * time.Millisecond)
	}
}

// runEvent posts a frame to the turn of its run. If the run is unknown, the turn that occupies the session gets it, because the
// run may continue an interrupted one; else the turn whose run spawned the session, unless the session is followed. Turns that
// observe the run get it too.
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
	// A watch may follow the session too, whether or not a turn takes the frame: for other conversations the run is a foreign one.
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

// eachTurn calls f for each registered turn, with a.mu held.
func (a *gatewayAgent) eachTurn(f func(*turn)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.turns {
		f(t)
	}
}

// firstRun returns the id of the turn's first run, <turn>.<message>. Histories contain the id, so a message and its run can be
// assigned to the turn without any stored table. If the message's id is not valid in a run's id, it is the turn's key alone.
func (t *turn) firstRun() string {
	if len(t.st.Runs) > 0 {
		return t.st.Runs[0].ID
	}
	if id := t.in.Key + "." + t.in.Message.ID; t.in.Message.ID != "" && event.CheckID("run", id) == nil {
		return id
	}
	return t.in.Key
}

// register routes the frames of the turn's session and runs to it. A session runs one turn of Leat at a time: the gateway would
// take a second message into the answer of the first. A turn whose message is not sent yet therefore waits for the turn before
// it, and calls waits, which may be nil, once before that. A turn that is resumed after its message was sent doesn't wait.
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

// waitSign is the interval in which a turn that waits for its session reports that it is alive, so that no silence limit ends it.
const waitSign = 10 * time.Second

// unregister undoes register or registerObserved, and closes finished, which wakes the next turn of the session. If the turn was
// ended from outside (by a user or a limit), its runs may still run upstream; they are recorded for Stop.
func (a *gatewayAgent) unregister(t *turn, endedElsewhere bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(t.finished)
	delete(a.turns, t.in.Turn)
	t.markBegun()
	if !t.isObserved {
		delete(a.beginnings, turnKey{t.in.Conversation, t.in.Key}) // Leat's own turns are never recorded by a watch
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
