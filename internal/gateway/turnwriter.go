package gateway

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// turnWriter is what a run, which runs the agent of a turn, asks of the writer of its conversation. It could be a connection to
// another process: arguments and results are values with a JSON form, nothing refers to memory of the writer, and errors are
// compared with errors.Is to ErrTurnOver, ErrUnavailable and those of the context only.
//
// The calls of one goroutine take effect in their order. A call for a turn that has ended, or that this writer doesn't know,
// returns ErrTurnOver.
type turnWriter interface {
	// Emit queues operations and returns before they are durable. It blocks while too much is queued.
	Emit(ctx context.Context, e emission) error
	// Flush returns once everything that was emitted before is durable.
	Flush(ctx context.Context, turn string) error
	// Ask opens a request, unless it is open or answered already, and returns its answer once that is durable.
	Ask(ctx context.Context, turn string, req event.Request) (event.Answer, error)
	// Activity returns what the turn waits for.
	Activity(ctx context.Context, turn string) (activity, error)
	// SetSession stores the session that the turn's agent wants to continue later, or deletes it if session is nil. Unlike the
	// other calls it is accepted after the turn's end, until Returned.
	SetSession(ctx context.Context, turn string, session json.RawMessage) error
	// SetPushed stores that the agent left the turn's stream to a producer, with the state of that stream.
	SetPushed(ctx context.Context, turn string, state json.RawMessage) error
	// SetDelivered stores that the agent has an answer, so that it isn't delivered again after a restart.
	SetDelivered(ctx context.Context, turn string, a event.Answer) error
	// End ends the turn, if it hasn't ended yet, and returns once the end is durable.
	End(ctx context.Context, turn string, end event.Body) error
	// Returned reports that the agent has returned. It is called once, last, and lets the next turn start.
	Returned(ctx context.Context, turn string, report runReport) error
}

// emission is a batch of a turn's operations.
type emission struct {
	Turn  string          `json:"turn"`
	Ops   []event.Event   `json:"ops,omitempty"`
	State json.RawMessage `json:"state,omitempty"` // of the agent after the operations; nil leaves it unchanged
	At    int64           `json:"at"`              // when they arrived, epoch milliseconds
}

// activity is what a turn waits for. A turn that waits is not silent.
type activity struct {
	IsWaiting  bool  `json:"waiting"`     // a tool runs, or a request is open
	AnsweredAt int64 `json:"answered_at"` // when the last request was answered, epoch milliseconds; 0 if none was
}

// runReport is what a run reports when its agent has returned.
type runReport struct {
	LateOps int64 `json:"late"`    // operations that the agent emitted after the end
	Foreign bool  `json:"foreign"` // something other than the agent ended the turn
}

// runner is the other direction: what the writer asks of the run of a turn. The same rules apply.
type runner interface {
	// Start calls the agent. It is called once, when the turn's start is durable.
	Start(start runStart)
	// Stop fences the agent: no operation that it emits later is accepted. It returns the operations that were buffered.
	Stop() []event.Event
	// TurnEnded reports that the turn's end is durable.
	TurnEnded()
	// Lose stops the run because its writer gave the conversation up.
	Lose(reason string)
	// Answer delivers an answer to an agent that doesn't wait for it in Ask.
	Answer(a event.Answer)
	// Steerable reports whether the agent accepts messages into its running turn.
	Steerable() bool
	// Steer offers a message to the agent.
	Steer(ctx context.Context, m agent.Message) error
	// Drain waits until the agent has returned, or until the next start can resume the turn without loss.
	Drain(ctx context.Context)
	// Detach leaves the turn to the next start, if that can resume it. Otherwise it does nothing and returns false.
	Detach() bool
}

// runStart is what a run begins with.
type runStart struct {
	Mode  startMode       `json:"mode"`
	Input agent.Input     `json:"input"`
	State json.RawMessage `json:"state,omitempty"` // of the agent or of the pushed stream; nil for a new turn
}

// startMode selects how the agent is called.
type startMode string

const (
	startRun     startMode = "run"     // agent.Agent
	startResume  startMode = "resume"  // agent.Resumer, or the stream of a producer
	startObserve startMode = "observe" // agent.Follower
)
