// One pushed turn: the decoder and its state, which is stored with the events that it led to.

package push

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// codeLease is the error code of a turn whose producer didn't reconnect before the lease expired.
const codeLease = "lease_expired"

// state is the part of a pushed turn that is stored with each commit, so that a producer can continue after a restart.
type state struct {
	Dialect string          `json:"dialect"`
	Offset  int64           `json:"offset"` // bytes of the body up to the end of the last frame whose events are committed
	Stream  json.RawMessage `json:"stream,omitempty"`
}

// appendJSON appends what encoding/json would. It exists because the state is written with nearly every commit and Stream needs no
// second encoding.
func (s *state) appendJSON(b []byte) []byte {
	b = event.AppendString(append(b, `{"dialect":`...), s.Dialect)
	b = strconv.AppendInt(append(b, `,"offset":`...), s.Offset, 10)
	if len(s.Stream) > 0 {
		b = append(append(b, `,"stream":`...), s.Stream...)
	}
	return append(b, '}')
}

// restore returns the stream in this state.
func (s *state) restore(d dialect.Dialect) (*dialect.Stream, error) {
	stream := dialect.NewStream(d)
	if s.Stream == nil {
		return stream, nil
	}
	return stream, stream.Restore(s.Stream)
}

// turn is a pushed turn that has not ended. It outlives its connections, and it exists before the turn runs if a producer attaches to a
// queued turn. If both locks are needed, mu is taken before turns.mu.
type turn struct {
	turns *openTurns
	id    string

	runStarted chan struct{} // closed when the turn runs
	finished   chan struct{} // closed when the turn no longer runs in this process, or never will
	result     chan error    // ends Run

	mu         sync.Mutex
	isFinished bool                // finished is closed
	run        *gateway.PushedTurn // nil while the turn is queued; dialect and stream are set with it
	dialect    dialect.Dialect
	stream     *dialect.Stream
	memory     agent.Reservation // counts what stream buffers
	state      state             // after the last frame that was emitted
	generation int               // of the attached connection; 0 before the first connection
	lease      *time.Timer
	fail       func(*event.Error) // ends the turn while it is queued; set by Attach

	answers        []event.Answer // for the producer
	answersChanged chan struct{}  // closed and replaced when an answer is added
}

// start sets the run of a turn. It returns false if the turn already has one. The lease starts if no producer has connected yet, for
// example after a restart, so that a turn without a producer ends.
func (p *turn) start(run gateway.PushedTurn, d dialect.Dialect, s *dialect.Stream, st state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		return false
	}
	p.run, p.dialect, p.stream, p.state = &run, d, s, st
	if p.generation == 0 {
		p.startLease()
	}
	close(p.runStarted)
	return true
}

func (p *turn) isRunOf(emitter *agent.Emitter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run != nil && p.run.Emitter == emitter
}

// save returns the operations with the state of the stream after them. p.mu is locked.
func (p *turn) save(ops []event.Event) ([]event.Event, json.RawMessage, error) {
	st, err := p.stream.State()
	if err != nil {
		return ops, nil, err
	}
	p.state = state{Dialect: p.dialect.Name, Offset: p.stream.Offset(), Stream: st}
	return ops, p.state.appendJSON(nil), nil
}

// finish makes Run return err. Only the first call has an effect.
func (p *turn) finish(err error) {
	select {
	case p.result <- err:
	default: // Run has not received an earlier result yet
	}
}

// addAnswer adds an answer for the producer, once. p.mu is locked.
func (p *turn) addAnswer(a event.Answer) {
	if slices.ContainsFunc(p.answers, func(b event.Answer) bool { return b.ID == a.ID }) {
		return
	}
	p.answers = append(p.answers, a)
	close(p.answersChanged)
	p.answersChanged = make(chan struct{})
}

// capture reports the bytes b of the stream after it has decoded some of them, or refused them with err. before are the bytes of the
// incomplete frame that the stream had before b. Part of a frame is sent again after a lost connection and must not be reported twice. Bytes
// that can't be decoded are reported as they are. p.mu is locked.
func (p *turn) capture(before, b []byte, decoded int64, err error) {
	switch {
	case !p.run.IsCaptured:
	case err != nil:
		p.run.Emitter.CaptureReceived(append(before, b...))
	case len(before) == 0:
		p.run.Emitter.CaptureReceived(b[:decoded])
	case decoded > 0:
		p.run.Emitter.CaptureReceived(append(before, b...)[:decoded])
	}
}

// incompleteFrame returns a copy of the stream's incomplete frame if it may be needed to capture b. No frame ends in a b without a line end,
// so nothing is copied for each piece of a long line; if it is refused, the report begins with b. p.mu is locked.
func (p *turn) incompleteFrame(b []byte) []byte {
	if !p.run.IsCaptured || p.stream.Buffered() == 0 || !bytes.ContainsAny(b, "\r\n") {
		return nil
	}
	return p.stream.Pending()
}

// startLease starts the lease, unless the turn is over. p.mu is locked.
func (p *turn) startLease() {
	p.stopLease()
	if p.isFinished {
		return
	}
	p.turns.mu.Lock()
	d := p.turns.lease
	p.turns.mu.Unlock()
	p.lease = time.AfterFunc(d, p.expire)
}

// stopLease stops the lease. A call of expire that already waits for p.mu finds lease nil and does nothing. p.mu is locked.
func (p *turn) stopLease() {
	if p.lease != nil {
		p.lease.Stop()
		p.lease = nil
	}
}

// expire ends a turn whose lease has expired. If the turn waits for a tool or a user, the lease starts again, because the producer has
// nothing to send meanwhile. A turn that runs fails through Run; a queued one is failed in its conversation, in a separate
// goroutine because that waits for a commit.
func (p *turn) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == nil {
		return // a producer has attached meanwhile
	}
	if p.run != nil && p.run.IsWaiting() {
		p.startLease()
		return
	}
	p.turns.leases.Inc()
	err := &agent.Error{Code: codeLease, Message: "the agent's connection was lost and did not come back", Retryable: true}
	if p.run != nil {
		p.finish(err)
		return
	}
	fail := p.fail
	p.turns.spawn(func() {
		p.turns.end(p)
		fail(err.ViewerError())
	})
}
