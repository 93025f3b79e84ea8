// Turns of other clients, seen over the REST API. A run whose stream the server doesn't keep is read from its stored messages.

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

// Observe implements [agent.Follower]. It reads another client's run from its start. After a restart it continues like a turn
// of Leat: with the approvals that are open, with approvals that may not have arrived, or after the last chunk.
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

// position returns where the turn's stream is resumed: the run, and the seq_id of the last chunk that was decoded. If the turn
// continues in a run that another client has started, that is the run's start.
func (t *turn) position() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, seq = t.lettaDecoder.Cursor()
	if t.saved.NextRun != "" && (run == "" || run == t.saved.AfterRun) {
		return t.saved.NextRun, 0
	}
	return run, seq
}

// setAwaitsRun records whether the last request may have started a run.
func (t *turn) setAwaitsRun(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaitsRun = yes
}

// mayOwnNewRun reports whether an unknown run of the conversation may be this turn's: it has sent a request, and the server has
// not named its run yet or the response was lost. The poller must not record such a run as another client's.
func (t *turn) mayOwnNewRun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.awaitsRun && t.streamRun == ""
}

// markSilent records that Probe ends the turn because its run is silent.
func (t *turn) markSilent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isSilent = true
}

// leavesRun reports whether the run is left running when the turn ends. Another client's run may be silent for longer than Leat
// waits, and Leat must not cancel it.
func (t *turn) leavesRun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isObserved && t.isSilent
}

// maxRuns limits restAgent.turnByRun. The map is cleared when it is full: only runs that the poller still lists have to be
// recognized.
const maxRuns = 4096

// setTurnOfRun records which turn shows a run. It ignores an empty run.
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

// turnOfRun returns the turn that shows a run or has shown it, or an empty id. t is nil if that turn has ended.
func (r *restAgent) turnOfRun(run string) (turn string, t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn = r.turnByRun[run]
	return turn, r.activeTurns[turn]
}

// turnsOf returns the running turns of a conversation.
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

// continuation is the answer of another client to the approvals that a turn waits for.
type continuation struct {
	run       string          // the run that the approvals have started, or empty
	decisions map[string]bool // by tool call: true if approved
}

// continueRun records the approvals of another client and returns the request that reads the run which they have started. If
// the other client has sent a message instead of approvals, the turn ends as lost.
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
		return nil, t.endLost(codeLost, "another client sent a message instead of answering the agent's request for approval")
	}
	return r.resumeRun(t), nil
}

// readRun reads a run from its start. If the server doesn't keep its stream, the response is built from the run's stored
// messages in the format of a stream, so that it is decoded in the same way.
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

// streamFrom returns the body of a request for a run's stream after the given seq_id.
func streamFrom(seq int64) map[string]any {
	return map[string]any{"starting_after": seq, "include_pings": true}
}

// runInfo returns the server's description of a run.
func (r *restAgent) runInfo(ctx context.Context, id string) (info runInfo, err error) {
	err = r.callJSON(ctx, &info, http.MethodGet, nil, nil, "runs", id)
	return info, err
}

// usage returns the chunk with a run's token usage. It returns nil if the server doesn't return the usage, since the text is
// complete without it.
func (r *restAgent) usage(ctx context.Context, run string) []byte {
	var u map[string]any
	if r.callJSON(ctx, &u, http.MethodGet, nil, nil, "runs", run, "usage") != nil || u == nil {
		return nil
	}
	u["message_type"] = "usage_statistics"
	b, err := json.Marshal(u)
	if err != nil {
		return nil // can't happen: u was JSON
	}
	return b
}

// endOf returns the chunks that a stream has after the stored messages of a run: usage, stop reason, error and [DONE]. The
// server stores no stop reason for a run whose client waits for the complete answer; it follows from the last message then.
func endOf(rows []*storedMessage, info runInfo, usage []byte) (frames []dialect.Frame) {
	add := func(event string, data []byte) { frames = append(frames, dialect.Frame{Event: event, Data: data}) }
	stop := info.Stop
	if stop == "" && len(rows) > 0 {
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
