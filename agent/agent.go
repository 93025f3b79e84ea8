package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/leat-dev/leat/event"
)

// Agent answers turns. The gateway calls Run once for each turn, in a separate goroutine; turns of different conversations run at the
// same time. If the turn ends early, ctx is canceled with the cause [ErrTurnOver] ([context.Cause]), and Run cancels the upstream's work.
// With another cause the gateway is stopping and a later process may resume the turn, so that work should continue.
type Agent interface {
	Run(ctx context.Context, in Input, emitter *Emitter) error
}

// Resumer is an agent whose upstream continues without a connection. After a restart, the gateway calls Resume instead of Run with the
// last state that was emitted (see [Emitter.Emit]). The log contains exactly the operations that were emitted up to that state.
type Resumer interface {
	Resume(ctx context.Context, in Input, state json.RawMessage, emitter *Emitter) error
}

// Drainer is a Resumer whose upstream may abort a turn when the connection closes. If NeedsDrain returns true, a gateway that stops
// waits for the turn, as it does for turns that can't be resumed; otherwise it disconnects at once.
type Drainer interface {
	Resumer
	NeedsDrain() bool
}

// Steerer is an agent that can receive a message while a turn runs. If Steer returns [ErrNotSteered], the gateway queues the message as
// a separate turn.
type Steerer interface {
	Steer(ctx context.Context, in Input, m Message) error
}

// Chooser is a Steerer that knows which running turns can receive a message. If Steers returns false, the gateway queues the message
// without a call of Steer.
type Chooser interface {
	Steers(turn string) bool
}

// Answerer is an agent that receives a person's answers to requests that it didn't open with [Emitter.Ask], such as those that a decoder
// emits. While Answer returns an error, the gateway retries for a minute, and again after a restart, so the same answer may arrive twice.
// If it returns an [*Error], the turn fails at once.
type Answerer interface {
	Answer(ctx context.Context, in Input, a event.Answer) error
}

// Checker is an agent that can test its configuration and its upstream without running a turn. See [Check].
type Checker interface {
	Check(ctx context.Context) error
}

// Prober is an agent that can ask its upstream about a turn that has been silent for its limit. The gateway calls Probe before it
// fails such a turn. If Probe returns nil, the upstream still works on the turn and the limit on silence starts again. If it returns an
// [*Error], the turn fails with that; after any other error it fails for its silence.
type Prober interface {
	Probe(ctx context.Context, in Input) error
}

// Compactor is an agent whose upstream shortens the context of a session when it gets a certain message. CompactCommand returns the text
// of that message. The upstream's reply is the answer of a turn.
type Compactor interface {
	CompactCommand() string
}

// ErrNotSteered says that the running turn can't take another message.
var ErrNotSteered = errors.New("agent: turn can't be steered")

// Input is the message to answer and its context. Its JSON form is what agents in other languages receive (docs/agents.md).
type Input struct {
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	// Key is the idempotency key for calls upstream. It derives from the turn and stays the same over retries and restarts.
	Key       string    `json:"key"`
	Principal Principal `json:"principal"`
	Message   Message   `json:"message"`
	History   []Message `json:"history,omitempty"` // oldest first, without Message
	// Tools are those that the client offers for this turn. To call one, an agent asks for an answer with [Emitter.Ask] and a request
	// of the kind [event.RequestInput], with the tool's name as Tool and its arguments as Data. The answer's Text is the result.
	Tools    []ClientTool               `json:"tools,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Session is the last session that the agent stored in this conversation with [Emitter.KeepSession].
	Session json.RawMessage `json:"-"`
	// Ingest is the address to which the turn's stream can be pushed. It is nil unless the agent is a [Pusher].
	Ingest *Ingest `json:"ingest,omitempty"`
}

// ClientTool is a tool that the client runs, such as a function of a web page. The gateway accepts at most 128 for a turn, with different
// names of 1 to 128 bytes, and 256 KiB together.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"` // what it does, for a model
	Parameters  json.RawMessage `json:"parameters,omitempty"`  // JSON schema of its arguments; nil if it has none
}

// Principal is the user for whom a turn runs.
type Principal struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// Message is a message of the conversation. Text is its visible text, and Parts has all of its content.
type Message struct {
	ID    string       `json:"id"`
	Role  event.Role   `json:"role"`
	Text  string       `json:"text"`
	Parts []event.Part `json:"parts,omitempty"`
}

// Keeper is an agent with something that runs between turns, such as a connection or a child process. The gateway calls Start once, before
// the first turn. Start doesn't block; later errors are logged. Close stops everything and waits for its end. It may be called without
// Start.
type Keeper interface {
	Agent
	Start(log *slog.Logger)
	Close()
}

// Signal is an event of an upstream outside turns, such as an action, a heartbeat or progress of a training. It has the form of an event
// of Eliza's sockets, and the gateway publishes it as a signal.
type Signal struct {
	Type       string // agent_event, heartbeat_event or training_event
	Stream     string
	RunID      string
	Seq        *int64 // within the run
	SessionKey string
	AgentID    string
	// Conversation is the conversation that the event belongs to. If it is empty, only operators see the event.
	Conversation string
	Payload      json.RawMessage
}

// Signaller is an agent that publishes signals. The gateway calls Signals once, before Start; report doesn't block.
type Signaller interface {
	Keeper
	Signals(report func(Signal))
}
