// Whether a run that shows no progress is still alive, for the REST API.

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

// codeSilence is the error code that the gateway uses for its limit on silence. A run that is silent upstream has the same one.
const codeSilence = "silence"

// runInfo is a run as the V1 API lists it.
type runInfo struct {
	ID           string    `json:"id"`
	Agent        string    `json:"agent_id"`
	Conversation string    `json:"conversation_id"` // empty for the agent's default conversation, and for blocking runs
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
	// blockingType is the type of a run whose client waits for the complete answer. The server lists such a run without its
	// conversation, and never updates its status.
	blockingType = "send_conversation_message"
	// asyncSuffix ends the type of a background run whose stream the server doesn't keep.
	asyncSuffix = "_async"
	// streamRetention is ten minutes less than the three hours for which the server keeps a run's stream.
	streamRetention = 2*time.Hour + 50*time.Minute
)

// hasStream reports whether the run's stream can be read from its start.
func (i runInfo) hasStream() bool {
	return i.Background && !strings.HasSuffix(i.Metadata.Type, asyncSuffix) && time.Since(i.Created) < streamRetention
}

// errNoRun is the error of a probe before the server has named the turn's run.
var errNoRun = errors.New("letta: no run of the turn is known")

// Probe implements [agent.Prober]. The server's pings prove nothing: after a restart it sends them for runs that died with the
// previous process, and still lists those as running. So a run that is listed as running fails because of its silence. If it
// has ended, its stream is read once more from the last chunk, in case the end was lost.
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
		return &agent.Error{Code: codeSilence, Message: "the Letta server has stopped streaming the run, although it lists it as " + info.Status + "; the server may have been restarted", Retryable: true}
	}
	if r.cfg.Background && t.restartStream() {
		return nil
	}
	return &agent.Error{Code: codeLost, Message: "the run has ended at the Letta server (" + info.Status + "), but its stream has no end", Retryable: true}
}

// setStreamRun records the run of the open stream.
func (t *turn) setStreamRun(run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streamRun = run
}

// currentRun returns the run of the open stream, or of the last one; it is empty if the server has not named the run yet.
func (t *turn) currentRun() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streamRun
}

// setStreamCancel records the function that ends the open stream, or nil if the stream is closed.
func (t *turn) setStreamCancel(cancel context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelStream = cancel
}

// restartStream ends the open stream, so that runStreams resumes it after its last chunk. It returns false if that was done
// before without a new chunk since, or if no stream is open.
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
