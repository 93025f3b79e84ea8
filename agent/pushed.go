package agent

import "context"

// Pusher is an agent that may hand a turn on: its Run returns a [*Pushed], and the turn's stream is pushed in, from
// wherever, to the address and with the token of [Input.Ingest], which only a Pusher gets.
type Pusher interface {
	Agent
	// MayPush says that it is one. It is never called.
	MayPush()
}

// Pushed is what the Run of a [Pusher] returns in place of an error where the turn's stream will be pushed. Nothing that
// belongs to the stream may have been emitted before.
type Pushed struct {
	Dialect string // of the stream
}

func (p *Pushed) Error() string { return "agent: the turn's stream will be pushed, as " + p.Dialect }

// Ingest says how the stream of a turn that was handed on is brought in: by PATCH to URL, see docs/protocol.md.
type Ingest struct {
	URL string `json:"url"`
	// Token is good for this turn alone, and for nothing but its stream.
	Token string `json:"token"`
}

// Stopper is an agent that wants to be told when somebody else has ended its turn: a person, a limit, a shutdown. Stop is
// called after Run has returned; its context has a few seconds.
type Stopper interface {
	Stop(ctx context.Context, in Input) error
}
