package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// PushAgent is the name of the agent of turns that a producer begins.
const PushAgent = "push"

// Pusher runs turns whose stream a producer pushes, in place of an agent that the gateway calls. Package push implements it. All methods
// may be called by several goroutines at once.
type Pusher interface {
	// Ingest returns where and with which token an agent can push the stream of a turn later, and the digest of the token, which is
	// stored with the turn.
	Ingest(turn string) (ingest *agent.Ingest, digest []byte)
	// NewState returns the state of a stream of a dialect before its first byte.
	NewState(dialect string) (json.RawMessage, error)
	// Run continues the stream of a turn until it ends, or until its producer stays away for too long.
	Run(ctx context.Context, t PushedTurn) error
	// Release is called once after each Run, when the end that it led to is durable. It disconnects the producer.
	Release(turn string, emitter *agent.Emitter)
	// TurnEnded is called when the end of any turn is durable. It disconnects the producer, if there is one.
	TurnEnded(turn string)
	// Answer delivers a user's answer to the producer of the turn, if there is one.
	Answer(turn string, a event.Answer)
	// SetLease sets how long a turn lives without its producer. Leases that have begun are not changed.
	SetLease(d time.Duration)
	// Close is called when the gateway stops. It stops all leases.
	Close()
}

// PushedTurn is a turn whose stream is pushed.
type PushedTurn struct {
	ID      string
	State   json.RawMessage // of the stream, as NewState or an emission of Run has left it
	Emitter *agent.Emitter
	// IsCaptured is true if Run should report the bytes of the stream to Out.
	IsCaptured bool
	// IsWaiting reports whether the turn waits for a tool or a user, so that its producer may be absent.
	IsWaiting func() bool
}

// errNoPusher is returned for pushed turns of a gateway without a [Pusher].
var errNoPusher = errors.New("gateway: pushed turns are not supported")

// noPusher is used if a gateway has no Pusher.
type noPusher struct{}

func (noPusher) Ingest(string) (*agent.Ingest, []byte) { return nil, nil }

func (noPusher) NewState(string) (json.RawMessage, error) { return nil, errNoPusher }

func (noPusher) Run(context.Context, PushedTurn) error { return errNoPusher }

func (noPusher) Release(string, *agent.Emitter) {}

func (noPusher) TurnEnded(string) {}

func (noPusher) Answer(string, event.Answer) {}

func (noPusher) SetLease(time.Duration) {}

func (noPusher) Close() {}
