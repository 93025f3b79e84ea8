package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
)

// codeSilence is the code of the gateway's own limit on silence.
const codeSilence = "silence"

// runInfo is a run as the V1 API describes it.
type runInfo struct {
	ID           string    `json:"id"`
	Agent        string    `json:"agent_id"`
	Conversation string    `json:"conversation_id"` // empty: the agent's own, or not told
	Status       string    `json:"status"`
	Stop         string    `json:"stop_reason"`
	Background   bool      `json:"background"`
	Created      time.Time `json:"created_at"`
	Metadata     struct {
		Type  string          `json:"run_type"`
		Error json.RawMessage `json:"error"`
	} `json:"metadata"`
}

// isOver reports whether the run has ended.
func (i runInfo) isOver() bool {
	switch i.Status {
	case "completed", "failed", "cancelled", "expired":
		return true
	}
	return false
}

const (
	// blockingType is the type of a run in a conversation, of which the server says neither the conversation nor the end if its client
	// waits for the whole answer.
	blockingType = "send_conversation_message"
	// asyncSuffix ends the type of a run in the background that no stream is kept of.
	asyncSuffix = "_async"
	// streamRetention is how long the server keeps the stream of a run, but for some minutes.
	streamRetention = 2*time.Hour + 50*time.Minute
)

// hasStream reports whether the run's stream can be read from its start.
func (i runInfo) hasStream() bool {
	return i.Background && !strings.HasSuffix(i.Metadata.Type, asyncSuffix) && time.Since(i.Created) < streamRetention
}

var errNoRun = errors.New("letta: no run of the turn is known")

// Probe implements [agent.Prober]. Pings prove nothing: a server that was restarted sends them for a run that died with the process
// before, and still counts that run as running. So a run fails for its silence unless it has ended; then its stream is read
// again, once, for what is missing.
func (r *restAgent) Probe(ctx context.Context, in agent.Input) error {
	r.mu.Lock()
	t := r.activeTurns[in.Turn]
	r.mu.Unlock()
	if t == nil {
		return errNoRun
	}
	run, _ := t.position()
	if run == "" {
		return errNoRun
	}
	var info runInfo
	if err := r.callJSON(ctx, &info, http.MethodGet, nil, nil, "runs", run); err != nil {
		return fmt.Errorf("status of run %s: %w", run, err)
	}
	if !info.isOver() {
		t.markSilent()
		return &agent.Error{Code: codeSilence, Message: "the Letta server sends nothing more of the run, though it still counts as " + info.Status + "; the server may have been restarted", Retryable: true}
	}
	if r.cfg.Background && t.restartStream() {
		return nil
	}
	return &agent.Error{Code: codeLost, Message: "the run has ended at the Letta server (" + info.Status + "), and its stream does not have the end", Retryable: true}
}

// setStreamRun notes the run of the stream at hand.
func (t *turn) setStreamRun(run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streamRun = run
}

// currentRun returns the run of the stream at hand, or of the last one; empty if the server has not named it.
func (t *turn) currentRun() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streamRun
}

// setStreamCancel notes how the turn's stream can be broken off; nil if there is none.
func (t *turn) setStreamCancel(cancel context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelStream = cancel
}

// restartStream breaks the stream off, so that it is taken up again after its last chunk. It reports false if that was done before, and
// nothing has come since.
func (t *turn) restartStream() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, seq := t.lettaDecoder.Cursor()
	at := fmt.Sprint(run, " ", seq)
	if t.rereadAt == at || t.cancelStream == nil {
		return false
	}
	t.rereadAt = at
	t.cancelStream(errBroken)
	return true
}
