package openclaw

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
)

// others is what a turn knows of the runs in its session that are not its own. Another client may have started one, or it may be
// the one by which the gateway answers a message of the turn: only a history says which.
type strayRuns struct {
	foreign    map[string]bool // runs that answer other clients
	strays     []item          // frames of runs of which it is not known yet
	historyDue bool            // a history may know more than the last one did
}

// maxStrays bounds the frames that are kept of runs that may turn out to be the turn's. Texts are snapshots, so what is dropped
// comes again.
const maxStrays = 256

// stray takes a frame of a run in the turn's session that is not the turn's.
func (t *turn) addStray(i item) {
	if t.foreign[i.run.Run] {
		if i.run.isEnd() && t.hasQueued() {
			t.historyDue = true // the session may be free now
		}
		return
	}
	t.unsure = true
	if t.isFirstContent(i) {
		t.historyDue = true
	}
	if len(t.strays) < maxStrays {
		t.strays = append(t.strays, i)
	}
}

// announces reports whether a frame is the first of its run, or the first of what the run says: by then the history has the message
// that the run answers.
func (t *turn) isFirstContent(i item) bool {
	for _, s := range t.strays {
		if s.run.Run == i.run.Run && (s.run.isContent() || !i.run.isContent()) {
			return false
		}
	}
	return true
}

// says reports whether a frame is of what a run says, rather than of its progress.
func (f *runFrame) isContent() bool {
	return f.Stream != "" && f.Stream != "lifecycle" && f.Stream != "run_status"
}

// waiting reports whether a message of the turn waits for another client's run.
func (t *turn) hasQueued() bool {
	for _, r := range t.openRuns() {
		if r.IsQueued {
			return true
		}
	}
	return false
}

// judged drops what was kept of the runs that a history has just shown to be others'. While a message of the turn waits, a run that the
// history does not know yet may be the one that answers it.
func (t *turn) sortStrays(conn *connection, history *sessionHistory) {
	waits := t.hasQueued() && conn.protocol() >= numberedProtocol
	var unknown []item
	for _, s := range t.strays {
		id := s.run.Run
		isListed := history.InFlight != nil && history.InFlight.Run == id || history.promptIndex(runQuery{run: id, protocol: numberedProtocol}) >= 0
		switch {
		case t.findRun(id) != nil:
		case waits && !isListed:
			unknown = append(unknown, s)
			t.unsure = true
		default:
			t.foreign[id] = true
		}
	}
	t.strays = unknown
}

// adopt takes up the run that continues r, or answers its message. h, which may be nil, is the history that says so.
func (t *turn) adopt(ctx context.Context, conn *connection, r *run, id string, history *sessionHistory) error {
	t.a.mu.Lock()
	delete(t.a.buffered, id)
	if t.isObserved {
		t.a.observers[id] = append(t.a.observers[id], t)
	} else {
		t.a.runs[id] = t
		t.a.recordAdoption(id, t.in.Conversation)
	}
	t.a.mu.Unlock()
	next := &run{ID: id, IsSent: true, IsAccepted: true, IsLive: true, SentAt: time.Now().UnixMilli(), PromptedAt: r.promptedAt().UnixMilli(), mayLackText: true}
	update := &event.Body{Upstream: &event.Upstream{Run: id}}
	if !r.IsQueued {
		update.Phase = "resumed"
	}
	err := t.step(func() ([]event.Event, error) {
		r.IsOver = true
		t.st.Runs = append(t.st.Runs, next)
		return []event.Event{{Type: event.TurnUpdate, Turn: t.in.Key, Body: update}}, nil
	})
	if err != nil {
		return err
	}
	t.emitter.Log().Info("OpenClaw answers in another run", "run", id, "before", r.ID)
	r.missingSince = time.Time{}
	recalled := false
	if history != nil {
		if recalled, err = t.recall(ctx, conn, history, next); err != nil {
			return err
		}
	}
	strays := t.strays
	t.strays = nil
	for _, s := range strays {
		switch {
		case s.run.Run != id:
			t.strays = append(t.strays, s)
		case recalled && s.outdated():
		case s.run.isEnd():
			t.batch = append([]item{s}, t.batch...) // as an end is taken that has just come
		default:
			if err := t.handleFrame(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// newText reports whether a frame is the first of a text that its gateway does not name.
func (i *item) startsText() bool {
	if i.run.Stream != "assistant" {
		return false
	}
	text, delta := i.texts()
	return text != "" && text == delta
}

// texts returns the text and the delta of a frame.
func (i *item) texts() (text, delta string) {
	var f struct {
		Payload struct {
			Data struct {
				Text, Delta string
			} `json:"data"`
		} `json:"payload"`
	}
	if json.Unmarshal(i.raw, &f) != nil {
		return "", ""
	}
	return f.Payload.Data.Text, f.Payload.Data.Delta
}

// late reports whether a frame is a snapshot of the beginning of a text that a history has already shown. If it is the beginning of another
// text, the next snapshot repeats it.
func (r *run) isStale(i *item) bool {
	if len(r.recalledTexts) == 0 || !i.outdated() {
		return false
	}
	text, _ := i.texts()
	return slices.ContainsFunc(r.recalledTexts, func(recalled string) bool { return len(text) < len(recalled) && strings.HasPrefix(recalled, text) })
}
