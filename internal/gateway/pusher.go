package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
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
	Release(turn string, out *agent.Emitter)
	// Ended is called when the end of any turn is durable. It disconnects the producer, if there is one.
	Ended(turn string)
	// Answer delivers a user's answer to the producer of the turn, if there is one.
	Answer(turn string, a event.Answer)
	// SetLease sets how long a turn lives without its producer. Leases that have begun are not changed.
	SetLease(d time.Duration)
	// Close is called when the gateway stops. It stops all leases.
	Close()
}

// PushedTurn is a turn whose stream is pushed.
type PushedTurn struct {
	ID    string
	State json.RawMessage // of the stream, as NewState or an emission of Run has left it
	Out   *agent.Emitter
	// IsCaptured is true if Run should report the bytes of the stream to Out.
	IsCaptured bool
	// IsWaiting reports whether the turn waits for a tool or a user, so that its producer may be absent.
	IsWaiting func() bool
}

// errNoPusher is returned for pushed turns of a gateway without a [Pusher].
var errNoPusher = errors.New("gateway: pushed turns are not supported")

// noPusher is used if a gateway has no Pusher.
type noPusher struct{}

func (noPusher) Ingest(string) (*agent.Ingest, []byte)    { return nil, nil }
func (noPusher) NewState(string) (json.RawMessage, error) { return nil, errNoPusher }
func (noPusher) Run(context.Context, PushedTurn) error    { return errNoPusher }
func (noPusher) Release(string, *agent.Emitter)           {}
func (noPusher) Ended(string)                             {}
func (noPusher) Answer(string, event.Answer)              {}
func (noPusher) SetLease(time.Duration)                   {}
func (noPusher) Close()                                   {}

// NewPushed describes a turn that a producer begins.
type NewPushed struct {
	Dialect string          // of the stream
	Answers string          // id of the message that the turn answers; may be empty
	Key     string          // idempotency key; may be empty
	State   json.RawMessage // of the stream before its first byte
}

// PushedTurns is what package push needs of the gateway to run the turns of producers.
type PushedTurns struct{ g *Gateway }

// PushedTurns returns the turns that producers push.
func (g *Gateway) PushedTurns() PushedTurns { return PushedTurns{g} }

// Begin begins a turn whose stream a producer pushes. If other turns are unfinished, it waits in the queue.
func (pt PushedTurns) Begin(ctx context.Context, p Principal, conversation string, opt NewPushed) (Ack, error) {
	if pt.g.Draining() {
		return Ack{}, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	for name, v := range map[string]string{"key": opt.Key, "answers": opt.Answers} {
		if err := event.CheckID(name, v); err != nil {
			return Ack{}, reject(ReasonInvalid, "%v", err)
		}
	}
	w, err := pt.g.writer(ctx, conversation)
	if err != nil {
		return Ack{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionAgent, &s); err != nil {
		return Ack{}, err
	}
	c := Command{Type: "push", Key: opt.Key, Agent: opt.Dialect, After: opt.Answers, by: By(ctx, p)}
	return w.keyed(ctx, c, func(t *tx) (Ack, error) {
		if n := len(w.inQueue(w.summary.Open)); n > pt.g.settings().MaxQueued {
			return Ack{}, reject(ReasonFull, "%d turns wait already", n-1)
		}
		if opt.Answers != "" && w.isNewMessageID(opt.Answers) {
			return Ack{}, reject(ReasonUnknown, "no message %q here", opt.Answers)
		}
		ack := Ack{Turn: newID()}
		if err := t.reserve(p, quota.Need{Turn: ack.Turn, Message: true, Bytes: pt.g.limits.sizeOf()}); err != nil {
			return Ack{}, err
		}
		a, _ := pt.g.agent(PushAgent, behalf(p))
		ack.State, ack.Seq = w.begin(t, ack.Turn, PushAgent, a, opt.Answers, p, opt.State)
		return ack, nil
	})
}

// FailQueued ends a turn of a conversation with an error, unless it has left the queue.
func (pt PushedTurns) FailQueued(ctx context.Context, conversation, turn string, e *event.Error) error {
	w, err := pt.g.writer(ctx, conversation)
	if err != nil {
		return err
	}
	defer w.release()
	return w.await(ctx, true, func(t *tx) error {
		if w.current != nil && w.current.id == turn || !w.openTurn(t, turn) {
			return nil
		}
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Failed, Error: e}})
		w.closeTurn(t, turn)
		return nil
	})
}

// Flush returns once everything that runs have emitted to a conversation is durable, with the seq of its last event.
func (pt PushedTurns) Flush(ctx context.Context, conversation string) (seq int64, err error) {
	w, err := pt.g.writer(ctx, conversation)
	if err != nil {
		return 0, err
	}
	defer w.release()
	err = w.await(ctx, false, func(t *tx) error {
		seq = w.head + int64(len(t.events))
		return nil
	})
	return seq, err
}

// IsUnfinished reports whether a turn of a conversation is queued or runs.
func (pt PushedTurns) IsUnfinished(ctx context.Context, conversation, turn string) (bool, error) {
	w, err := pt.g.writer(ctx, conversation)
	if err != nil {
		return false, err
	}
	defer w.release()
	return slices.Contains(w.info().Open, turn), nil
}

// MayBePushed reports whether a producer may push the stream of a turn: a producer began it, its agent has left it to one, or its agent
// may still do so.
func (pt PushedTurns) MayBePushed(ctx context.Context, conversation, turn, agentName string) (bool, error) {
	if agentName == PushAgent {
		return true, nil
	}
	p, err := pt.principal(ctx, conversation, turn)
	if err != nil {
		return false, JournalError("look up principal of turn", err)
	}
	if a, ok := pt.g.agent(agentName, p); ok {
		if _, ok := a.Agent.(agent.Pusher); ok {
			return true, nil
		}
	}
	return isPushed(ctx, pt.g.journal, turn) // its agent may have been removed from the configuration
}

// principal returns the principal on whose behalf a turn runs or ran. If the turn has ended, this is the conversation's owner.
func (pt PushedTurns) principal(ctx context.Context, conversation, turn string) (agent.Principal, error) {
	p, err := turnPrincipal(ctx, pt.g.journal, turn)
	if errors.Is(err, journal.ErrNotFound) {
		var s journal.Summary
		s, err = pt.g.journal.Conversation(ctx, conversation)
		p = agent.Principal{Tenant: s.Tenant, Subject: s.Owner}
	}
	return p, err
}

// isPushed reports whether an agent has left a turn, which is unfinished, to a producer.
func isPushed(ctx context.Context, j journal.Journal, turn string) (bool, error) {
	_, err := j.Get(ctx, journalkey.TurnPushed(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// issue returns where the agent can push the turn's stream, and stores the digest of the token. It returns nil if the agent doesn't push.
func (w *writer) issue(t *tx, turn string, a Agent) *agent.Ingest {
	if _, ok := a.Agent.(agent.Pusher); !ok {
		return nil
	}
	ingest, digest := w.g.pusher.Ingest(turn)
	t.set(journalkey.TurnToken(turn), digest, 0)
	return ingest
}

// pushedTo returns the error with which an agent leaves its turn to a producer, nil if err is another one.
func pushedTo(a Agent, err error) *agent.Pushed {
	var to *agent.Pushed
	if _, ok := a.Agent.(agent.Pusher); ok && errors.As(err, &to) {
		return to
	}
	return nil
}
