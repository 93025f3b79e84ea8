package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
)

// Tracer is told of turns as they run. nil in [Config] is none. Its methods are called from several
// goroutines and must not block.
type Tracer interface {
	// Turn is called when a turn is about to run. The agent runs under the context that it returns, which must derive
	// from ctx.
	Turn(ctx context.Context, t TurnInfo) (context.Context, TurnTrace)
}

// TurnInfo says which turn runs.
type TurnInfo struct {
	Conversation, Turn string
	Agent, Kind        string
	IsResumed          bool   // after a restart
	Parent             string // the W3C traceparent of the request that asked for the turn; empty where there was none
}

// TurnTrace is told of one turn, in order, by one goroutine at a time.
type TurnTrace interface {
	// Commit is called for each commit that held something of the turn: when it was handed to the journal, when it was
	// durable, when readers could see it.
	Commit(events int, submittedAt, durable, shownAt time.Time)
	// FirstText is called once, when readers could see the turn's first text. It comes before that commit's Commit.
	FirstText(shownAt time.Time)
	// End is called once, and nothing after it. body is that of the turn's end, nil where the turn goes on elsewhere or
	// later; then err, where it is not nil, says why.
	End(body *event.Body, err error)
}

// parents holds the traceparents of turns that have not begun yet. It is memory only: a turn that waits in the queue
// over a restart begins a trace of its own.
type parents struct {
	mu sync.Mutex
	of map[string]string
}

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

// take returns a turn's and forgets it.
func (p *parents) take(turn string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[turn]
	delete(p.of, turn)
	return s
}
