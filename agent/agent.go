package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/leat-dev/leat/event"
)

// Agent answers turns. Run is called once a turn, from a goroutine of its own; several turns of different conversations
// run at the same time. The cause of its context ([context.Cause]) is ErrTurnOver where the turn has ended, and something else
// where it is only left, for another process to resume.
type Agent interface {
	Run(ctx context.Context, in Input, out *Emitter) error
}

// Resumer is an agent whose upstream goes on without it. After a restart of the gateway, Resume is called in place of
// Run with the state that was last emitted (see [Emitter.Emit]); the log holds exactly what was emitted up to it.
type Resumer interface {
	Resume(ctx context.Context, in Input, state json.RawMessage, out *Emitter) error
}

// Tied is a Resumer that can tell whether its upstream gives a turn up when it is left, so that little is there to resume: then
// a stop of the gateway waits for such a turn as for one that can't be resumed.
type Tied interface {
	Resumer
	Tied() bool
}

// Steerer takes a message while its turn runs. ErrNotSteered queues the message as a turn of its own.
type Steerer interface {
	Steer(ctx context.Context, in Input, m Message) error
}

// Chooser is a Steerer that knows beforehand which turns take no message: those are queued without asking.
type Chooser interface {
	Steers(turn string) bool
}

// Answerer takes a person's answer to a request that its turn waits on, where that was not opened by [Emitter.Ask], which returns
// the answer itself. It is told again while it returns an error, for a minute, and after a restart: so it may be told twice. An
// [*Error] ends the turn at once.
type Answerer interface {
	Answer(ctx context.Context, in Input, a event.Answer) error
}

// Checker is an agent that can tell whether it is there, without running a turn.
type Checker interface {
	Check(ctx context.Context) error
}

// Prober is an agent that can ask its upstream about a turn that has been silent for its limit. The gateway calls Probe before it
// fails such a turn. If Probe returns nil, the upstream still works on the turn and the limit on silence starts again. If it returns an
// [*Error], the turn fails with that; after any other error it fails for its silence.
type Prober interface {
	Probe(ctx context.Context, in Input) error
}

// ErrNotSteered says that the running turn can't take another message.
var ErrNotSteered = errors.New("agent: turn can't be steered")

// Input is what an agent gets to answer.
type Input struct {
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	// Key is the idempotency key for calls upstream. It derives from the turn and stays the same over retries and restarts.
	Key       string                     `json:"key"`
	Principal Principal                  `json:"principal"`
	Message   Message                    `json:"message"`
	History   []Message                  `json:"history,omitempty"` // oldest first, without Message
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
	// Session is what the agent last gave to [Emitter.KeepSession] in this conversation.
	Session json.RawMessage `json:"-"`
	// Ingest is where the turn's stream can be pushed; a [Pusher] alone has it.
	Ingest *Ingest `json:"ingest,omitempty"`
}

// Principal is on whose behalf a turn runs.
type Principal struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// Message is one message of the conversation. Text is its visible text.
type Message struct {
	ID    string       `json:"id"`
	Role  event.Role   `json:"role"`
	Text  string       `json:"text"`
	Parts []event.Part `json:"parts,omitempty"`
}
