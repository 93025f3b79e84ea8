package agent

import "context"

// Pusher is an agent whose turns may be answered later by another program, the producer. Its Run returns a [*PushPending], and the producer
// pushes the stream to the address, and with the token, of [Input.Ingest].
type Pusher interface {
	Agent
	// MayPush marks the agent as a Pusher. It is never called.
	MayPush()
}

// PushPending is the error that Run of a [Pusher] returns if a producer will push the turn's stream. The turn then continues. Run
// must not have emitted a part of that stream.
type PushPending struct {
	Dialect string // of the stream
}

func (p *PushPending) Error() string {
	return "agent: the turn's stream will be pushed, as " + p.Dialect
}

// Ingest is the address to which a producer pushes the stream of one turn with PATCH; see docs/protocol.md.
type Ingest struct {
	URL string `json:"url"`
	// Token is valid only for the stream of this turn.
	Token string `json:"token"`
}

// Stopper is an agent that cleans up after a turn that a person, a limit or a shutdown ended. The gateway calls Stop after Run has
// returned, with a context that expires after a few seconds.
type Stopper interface {
	Stop(ctx context.Context, in Input) error
}
