package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

var _ agent.Follower = (*rest)(nil)

// Observe implements [agent.Follower]: the run of another client is read from its start, as a turn is read that has lost its connection.
func (r *rest) Observe(ctx context.Context, in agent.Input, raw json.RawMessage, out *agent.Emitter) error {
	t := newTurn(in, out, r.dialect)
	t.observed = true
	if err := t.restore(raw); err != nil {
		return err
	}
	st := t.noted()
	if run, _ := t.place(); run == "" {
		return errState
	}
	switch {
	case len(t.waiting()) > 0:
		return shown(r.drive(ctx, t, nil, false))
	case st.Run == "" && st.Answer != nil && t.unheard():
		return shown(r.drive(ctx, t, r.send(t, st.Answer), false))
	}
	return shown(r.drive(ctx, t, r.onward(t), true))
}

// place returns where the turn's stream is resumed: the run, and the seq_id of the last chunk that was taken of it.
func (t *turn) place() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, seq = t.dec.Cursor()
	if t.st.Run != "" && (run == "" || run == t.st.After) {
		return t.st.Run, 0
	}
	return run, seq
}

// requests notes whether the server may have begun a run for the last request.
func (t *turn) requests(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.request = yes
}

// requesting reports whether a run that no turn shows may be the turn's own: the server has not named it yet, or its answer was
// lost.
func (t *turn) requesting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.request && t.running == ""
}

// hush notes that the turn ends for its silence.
func (t *turn) hush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silent = true
}

// leaves reports whether the run is left as it is when the turn ends: a run of another client may be silent for longer than Leat waits.
func (t *turn) leaves() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observed && t.silent
}

// maxNamed bounds the runs that are remembered.
const maxNamed = 4096

// remember notes to which turn a run belongs.
func (r *rest) remember(run string, t *turn) {
	if run == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.named) >= maxNamed {
		clear(r.named)
	}
	r.named[run] = t.in.Turn
}

// shownBy returns the turn that shows a run or has shown it, or an empty id. If the turn has ended, t is nil.
func (r *rest) shownBy(run string) (turn string, t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn = r.named[run]
	return turn, r.live[turn]
}

// running returns the turns of a conversation that are in progress.
func (r *rest) running(conversation string) (all []*turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.live {
		if t.in.Conversation == conversation {
			all = append(all, t)
		}
	}
	return all
}

// continuation is what another client has answered to the approvals that a turn waits for.
type continuation struct {
	run     string          // the run that begins with the answers; empty if they began no run
	answers map[string]bool // by call: allowed
}

// continued notes the answers of another client, and returns the step that reads the run that they have begun.
func (r *rest) continued(t *turn, c continuation) (step, error) {
	err := t.note(func() []event.Event {
		ops := answered(t.dec, c.answers)
		t.st.After, _ = t.dec.Cursor()
		t.st.Answer, t.st.Run = nil, c.run
		return ops
	})
	switch {
	case err != nil:
		return nil, err
	case c.run == "":
		return nil, t.lost(codeLost, "another message was sent in place of an answer to what the agent had asked")
	}
	return r.onward(t), nil
}

// fromStart requests a run from its start: its stream, or what is stored of it if the server has no stream.
func (r *rest) fromStart(ctx context.Context, run string) (*http.Response, error) {
	info, err := r.run(ctx, run)
	if err != nil {
		return nil, err
	}
	if info.streams() {
		return r.call(ctx, http.MethodPost, nil, streamFrom(0), "runs", run, "stream")
	}
	rows, err := r.rows(ctx, url.Values{}, "", "runs", run, "messages")
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	var frames []dialect.Frame
	for _, m := range rows {
		frames = append(frames, dialect.Frame{Data: m.raw})
	}
	for _, f := range append(frames, endOf(rows, info, r.usage(ctx, run))...) {
		if f.Event != "" {
			fmt.Fprintf(&body, "event: %s\n", f.Event)
		}
		fmt.Fprintf(&body, "data: %s\n\n", f.Data)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&body)}, nil
}

func streamFrom(seq int64) map[string]any {
	return map[string]any{"starting_after": seq, "include_pings": true}
}

// run returns a run as the server describes it.
func (r *rest) run(ctx context.Context, id string) (info runInfo, err error) {
	if err = r.short(ctx, &info, http.MethodGet, nil, nil, "runs", id); err != nil {
		return info, err
	}
	return info, nil
}

// usage returns the frame that counts a run's tokens, nil if the server can't tell.
func (r *rest) usage(ctx context.Context, run string) []byte {
	var u map[string]any
	if r.short(ctx, &u, http.MethodGet, nil, nil, "runs", run, "usage") != nil || u == nil {
		return nil // the text is complete without it
	}
	u["message_type"] = "usage_statistics"
	b, err := json.Marshal(u)
	if err != nil {
		return nil // it was JSON
	}
	return b
}

// endOf returns the frames that end what is stored of a run.
func endOf(rows []*stored, info runInfo, usage []byte) (frames []dialect.Frame) {
	add := func(event string, data []byte) { frames = append(frames, dialect.Frame{Event: event, Data: data}) }
	stop := info.Stop
	if stop == "" && len(rows) > 0 {
		// The server stores no end of a run whose client waits for the whole answer.
		switch rows[len(rows)-1].Type {
		case rowAnswer:
			stop = "end_turn"
		case rowRequest:
			stop = waitingStop
		}
	}
	failed := len(info.Metadata.Error) > 0 && info.Metadata.Error[0] == '{' && !letta.Completed(stop)
	if usage != nil && !failed {
		add("", usage)
	}
	if stop != "" {
		b, err := json.Marshal(map[string]string{"message_type": "stop_reason", "stop_reason": stop})
		if err == nil { // always, of strings
			add("", b)
		}
	}
	if failed {
		add("error", info.Metadata.Error)
	}
	add("", []byte("[DONE]"))
	return frames
}
