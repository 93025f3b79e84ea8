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
type others struct {
	foreign map[string]bool // runs that answer other clients
	strays  []item          // frames of runs of which it is not known yet
	curious bool            // a history may know more than the last one did
}

// maxStrays bounds the frames that are kept of runs that may turn out to be the turn's. Texts are snapshots, so what is dropped
// comes again.
const maxStrays = 256

// stray takes a frame of a run in the turn's session that is not the turn's.
func (t *turn) stray(i item) {
	if t.foreign[i.run.Run] {
		if i.run.over() && t.waiting() {
			t.curious = true // the session may be free now
		}
		return
	}
	t.unsure = true
	if t.announces(i) {
		t.curious = true
	}
	if len(t.strays) < maxStrays {
		t.strays = append(t.strays, i)
	}
}

// announces reports whether a frame is the first of its run, or the first of what the run says: by then the history has the message
// that the run answers.
func (t *turn) announces(i item) bool {
	for _, s := range t.strays {
		if s.run.Run == i.run.Run && (s.run.says() || !i.run.says()) {
			return false
		}
	}
	return true
}

// says reports whether a frame is of what a run says, rather than of its progress.
func (f *runFrame) says() bool {
	return f.Stream != "" && f.Stream != "lifecycle" && f.Stream != "run_status"
}

// waiting reports whether a message of the turn waits for another client's run.
func (t *turn) waiting() bool {
	for _, r := range t.open() {
		if r.Queued {
			return true
		}
	}
	return false
}

// judged drops what was kept of the runs that a history has just shown to be others'. While a message of the turn waits, a run that the
// history does not know yet may be the one that answers it.
func (t *turn) judged(l *link, h *history) {
	waits := t.waiting() && l.protocol() >= numbered
	var unknown []item
	for _, s := range t.strays {
		id := s.run.Run
		known := h.InFlight != nil && h.InFlight.Run == id || h.user(question{run: id, protocol: numbered}) >= 0
		switch {
		case t.find(id) != nil:
		case waits && !known:
			unknown = append(unknown, s)
			t.unsure = true
		default:
			t.foreign[id] = true
		}
	}
	t.strays = unknown
}

// adopt takes up the run that continues r, or answers its message. h, which may be nil, is the history that says so.
func (t *turn) adopt(ctx context.Context, l *link, r *run, id string, h *history) error {
	t.a.mu.Lock()
	delete(t.a.buffered, id)
	if t.observed {
		t.a.observers[id] = append(t.a.observers[id], t)
	} else {
		t.a.runs[id] = t
		t.a.remember(id, t.in.Conversation)
	}
	t.a.mu.Unlock()
	next := &run{ID: id, Sent: true, Taken: true, Live: true, At: time.Now().UnixMilli(), Asked: r.asked().UnixMilli(), blind: true}
	update := &event.Body{Upstream: &event.Upstream{Run: id}}
	if !r.Queued {
		update.Phase = "resumed"
	}
	err := t.step(func() ([]event.Event, error) {
		r.Over = true
		t.st.Runs = append(t.st.Runs, next)
		return []event.Event{{Type: event.TurnUpdate, Turn: t.in.Key, Body: update}}, nil
	})
	if err != nil {
		return err
	}
	t.out.Log().Info("OpenClaw answers in another run", "run", id, "before", r.ID)
	r.missing = time.Time{}
	recalled := false
	if h != nil {
		if recalled, err = t.recall(ctx, l, h, next); err != nil {
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
		case s.run.over():
			t.batch = append([]item{s}, t.batch...) // as an end is taken that has just come
		default:
			if err := t.frame(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// newText reports whether a frame is the first of a text that its gateway does not name.
func (i *item) newText() bool {
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
func (r *run) late(i *item) bool {
	if len(r.recalled) == 0 || !i.outdated() {
		return false
	}
	text, _ := i.texts()
	return slices.ContainsFunc(r.recalled, func(whole string) bool { return len(text) < len(whole) && strings.HasPrefix(whole, text) })
}
