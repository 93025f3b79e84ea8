// Frames of runs without a turn so far. They are kept until the message that began their run is known, and then replayed in order.

package openclaw

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
)

// strayRuns are the runs in a turn's session that are not known to be the turn's. Each may belong to another client, or be the
// run that answers a message of the turn; only a history tells.
type strayRuns struct {
	foreign    map[string]bool // runs that are certain to answer other clients
	strays     []item          // frames of the undecided runs, oldest first
	historyDue bool            // a new history may decide: read it after the current batch
}

// maxStrays is how many frames of undecided runs are buffered. Text frames are snapshots, so later ones contain what is dropped.
const maxStrays = 256

// addStray buffers a frame of such a run and has the history read soon. Frames of runs that are known to be foreign are
// dropped, but the end of one may free the session for a queued message.
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

// isFirstContent reports whether a frame is the first of its run, or its first content. From then on the history contains the
// message that the run answers, so it is worth reading.
func (t *turn) isFirstContent(i item) bool {
	return !slices.ContainsFunc(t.strays, func(s item) bool { return s.run.Run == i.run.Run && (s.run.isContent() || !i.run.isContent()) })
}

// isContent reports whether a frame has content of a run, rather than progress.
func (f *runFrame) isContent() bool {
	return f.Stream != "" && f.Stream != "lifecycle" && f.Stream != "run_status"
}

// hasQueued reports whether a message of the turn is queued behind another client's run.
func (t *turn) hasQueued() bool {
	return slices.ContainsFunc(t.openRuns(), func(r *run) bool { return r.IsQueued })
}

// sortStrays marks the runs as foreign that history shows and the turn has not adopted, and drops their frames. While a message
// of the turn is queued, a run that the history doesn't show yet may still be the one that answers it, so its frames stay.
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

// adopt makes the run id one of the turn's, as the one that continues r or answers its message, and ends r. history, which may
// be nil, shows the new run; buffered frames that it repeats are dropped.
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
			t.batch = append([]item{s}, t.batch...) // handled as if the end had just arrived
		default:
			if err := t.handleFrame(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// startsText reports whether a frame is the first snapshot of a text segment without an id, as gateways before protocol 4 send
// them.
func (i *item) startsText() bool {
	if i.run.Stream != "assistant" {
		return false
	}
	text, delta := i.texts()
	return text != "" && text == delta
}

// texts returns the whole text and the latest addition in a snapshot.
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

// isStale reports whether a frame is a snapshot of the beginning of a text that a history has already shown whole. If it is in
// fact the beginning of another text, the next snapshot contains it again.
func (r *run) isStale(i *item) bool {
	if len(r.recalledTexts) == 0 || !i.outdated() {
		return false
	}
	text, _ := i.texts()
	return slices.ContainsFunc(r.recalledTexts, func(recalled string) bool { return len(text) < len(recalled) && strings.HasPrefix(recalled, text) })
}
