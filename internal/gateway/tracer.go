package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
)

// Tracer traces turns. Its methods are called from several goroutines and must not block.
type Tracer interface {
	// Turn is called when a turn is about to run. The agent runs under the context that it returns, which must derive
	// from ctx.
	Turn(ctx context.Context, t TurnInfo) (context.Context, TurnTrace)
}

// TurnInfo describes a turn that is about to run.
type TurnInfo struct {
	Conversation, Turn string
	Agent, Kind        string
	IsResumed          bool   // after a restart
	Parent             string // the W3C traceparent of the request that asked for the turn; may be empty
}

// TurnTrace is the trace of one turn. One goroutine at a time calls its methods, in the order of what happens.
type TurnTrace interface {
	// Commit is called for each commit with events of the turn, with the times at which the journal got it, at which it was durable,
	// and at which readers could see it.
	Commit(events int, submittedAt, durable, shownAt time.Time)
	// FirstText is called once, when readers could see the turn's first text, and before Commit for that commit.
	FirstText(shownAt time.Time)
	// End is the last call. body is that of the turn's end. If it is nil, this process stops running the turn, which may continue
	// elsewhere or later, and err is the reason.
	End(body *event.Body, err error)
}

// parents are the traceparents of turns that have not started yet. They are only in memory: a turn that waits in the queue over
// a restart begins a new trace.
type parents struct {
	mu sync.Mutex
	of map[string]string
}

// add stores the traceparent of the request that asked for a turn.
func (p *parents) add(turn, traceparent string) {
	if traceparent == "" {
		return // most have none
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]string{}
	}
	p.of[turn] = traceparent
}

// take returns the traceparent of a turn and removes it.
func (p *parents) take(turn string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[turn]
	delete(p.of, turn)
	return s
}
