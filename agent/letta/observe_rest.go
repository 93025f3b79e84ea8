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

var _ agent.Follower = (*restAgent)(nil)

// Observe implements [agent.Follower]: the run of another client is read from its start, as a turn is read that has lost its connection.
func (r *restAgent) Observe(ctx context.Context, in agent.Input, raw json.RawMessage, emitter *agent.Emitter) error {
	t := newTurn(in, emitter, r.dialect)
	t.isObserved = true
	if err := t.restore(raw); err != nil {
		return err
	}
	st := t.snapshot()
	if run, _ := t.position(); run == "" {
		return errState
	}
	switch {
	case len(t.approvals()) > 0:
		return readerError(r.runStreams(ctx, t, nil, false))
	case st.NextRun == "" && st.Answer != nil && t.awaitsRunOfLastSend():
		return readerError(r.runStreams(ctx, t, r.send(t, st.Answer), false))
	}
	return readerError(r.runStreams(ctx, t, r.resumeRun(t), true))
}

// position returns where the turn's stream is resumed: the run, and the seq_id of the last chunk that was taken of it.
func (t *turn) position() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, seq = t.lettaDecoder.Cursor()
	if t.saved.NextRun != "" && (run == "" || run == t.saved.AfterRun) {
		return t.saved.NextRun, 0
	}
	return run, seq
}

// setAwaitsRun notes whether the server may have begun a run for the last request.
func (t *turn) setAwaitsRun(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaitsRun = yes
}

// mayOwnNewRun reports whether a run that no turn shows may be the turn's own: the server has not named it yet, or its answer was
// lost.
func (t *turn) mayOwnNewRun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.awaitsRun && t.streamRun == ""
}

// markSilent notes that the turn ends for its silence.
func (t *turn) markSilent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isSilent = true
}

// leavesRun reports whether the run is left as it is when the turn ends: a run of another client may be silent for longer than Leat waits.
func (t *turn) leavesRun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isObserved && t.isSilent
}

// maxRuns bounds the runs that are remembered.
const maxRuns = 4096

// setTurnOfRun notes to which turn a run belongs.
func (r *restAgent) setTurnOfRun(run string, t *turn) {
	if run == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turnByRun) >= maxRuns {
		clear(r.turnByRun)
	}
	r.turnByRun[run] = t.in.Turn
}

// turnOfRun returns the turn that shows a run or has shown it, or an empty id. If the turn has ended, t is nil.
func (r *restAgent) turnOfRun(run string) (turn string, t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn = r.turnByRun[run]
	return turn, r.activeTurns[turn]
}

// turnsOf returns the turns of a conversation that are in progress.
func (r *restAgent) turnsOf(conversation string) (turns []*turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.activeTurns {
		if t.in.Conversation == conversation {
			turns = append(turns, t)
		}
	}
	return turns
}

// continuation is what another client has answered to the approvals that a turn waits for.
type continuation struct {
	run       string          // the run that begins with the answers; empty if they began no run
	decisions map[string]bool // by call: allowed
}

// continueRun notes the answers of another client, and returns the step that reads the run that they have begun.
func (r *restAgent) continueRun(t *turn, c continuation) (streamRequest, error) {
	err := t.update(func() []event.Event {
		ops := recordDecisions(t.lettaDecoder, c.decisions)
		t.saved.AfterRun, _ = t.lettaDecoder.Cursor()
		t.saved.Answer, t.saved.NextRun = nil, c.run
		return ops
	})
	switch {
	case err != nil:
		return nil, err
	case c.run == "":
		return nil, t.endLost(codeLost, "another message was sent in place of an answer to what the agent had asked")
	}
	return r.resumeRun(t), nil
}

// readRun requests a run from its start: its stream, or what is stored of it if the server has no stream.
func (r *restAgent) readRun(ctx context.Context, run string) (*http.Response, error) {
	info, err := r.runInfo(ctx, run)
	if err != nil {
		return nil, err
	}
	if info.hasStream() {
		return r.call(ctx, http.MethodPost, nil, streamFrom(0), "runs", run, "stream")
	}
	rows, err := r.storedMessages(ctx, url.Values{}, "", "runs", run, "messages")
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

// runInfo returns a run as the server describes it.
func (r *restAgent) runInfo(ctx context.Context, id string) (info runInfo, err error) {
	if err = r.callJSON(ctx, &info, http.MethodGet, nil, nil, "runs", id); err != nil {
		return info, err
	}
	return info, nil
}

// usage returns the frame that counts a run's tokens, nil if the server can't tell.
func (r *restAgent) usage(ctx context.Context, run string) []byte {
	var u map[string]any
	if r.callJSON(ctx, &u, http.MethodGet, nil, nil, "runs", run, "usage") != nil || u == nil {
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
func endOf(rows []*storedMessage, info runInfo, usage []byte) (frames []dialect.Frame) {
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
