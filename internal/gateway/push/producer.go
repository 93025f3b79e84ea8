// A producer's connection to a turn: it writes bytes, which are decoded and committed, and gets the offset that is durable.

package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// errReplaced is returned to a connection after the producer's next connection has taken over.
var errReplaced = fmt.Errorf("%w: another connection has taken over", gateway.ErrTurnOver)

// Producer is one connection that pushes a turn's stream. One goroutine calls Write and, at the end, Close. Done, Acks and Answers may be
// called from another one.
type Producer struct {
	Turn         string
	Conversation string

	service    *Service
	turn       *turn
	generation int      // of this connection; turn.generation differs after another one has taken over
	acks       chan Ack // capacity 1

	mu       sync.Mutex // protects the four fields below
	offset   int64      // to be acknowledged
	isAcked  bool       // sendAcks has taken offset, or nothing was written yet
	isBusy   bool       // sendAcks runs
	wantsAck bool       // Acks was called since the last acknowledgement

	delivered int // number of the turn's answers that this connection got
}

// Ack is an acknowledgement: the bytes of the body up to Offset are committed, with events up to Seq.
type Ack struct {
	Offset int64 `json:"offset"`
	Seq    int64 `json:"seq"`
}

// Offset returns where the producer has to continue: the end of the last frame that was accepted.
func (pr *Producer) Offset() int64 {
	pr.turn.mu.Lock()
	defer pr.turn.mu.Unlock()
	return pr.turn.state.Offset
}

// ready waits until the turn runs. A turn that runs already wins over the other conditions, which a single select would not ensure.
func (pr *Producer) ready(ctx context.Context) error {
	select {
	case <-pr.turn.runStarted:
		return nil
	default:
	}
	select {
	case <-pr.turn.runStarted:
		return nil
	case <-pr.turn.finished:
		return gateway.ErrTurnOver // it was stopped while it was queued
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Write accepts the next bytes of the body. It blocks while the turn is queued, and while too many events wait to be committed. After the
// turn's end, or after another connection has taken over, the error wraps [gateway.ErrTurnOver]. An error that wraps *dialect.Error has
// failed the turn.
//
// decode runs inside Emitter.Decode, which emits its events and the state of the stream after them together, so that one commit makes both
// durable. If b completes no frame, the state has not changed and isn't saved.
func (pr *Producer) Write(ctx context.Context, b []byte) error {
	if err := pr.ready(ctx); err != nil {
		return err
	}
	p := pr.turn
	p.mu.Lock()
	run, isReplaced := p.run, p.generation != pr.generation
	p.mu.Unlock()
	if isReplaced {
		return errReplaced
	}
	var offset int64
	hasProgress := false
	decode := func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.generation != pr.generation {
			return nil, nil, errReplaced
		}
		before, incomplete := p.stream.Offset(), p.incompleteFrame(b)
		ops, err := p.stream.Write(b)
		hasProgress = p.stream.Advanced()
		offset = p.stream.Offset()
		p.capture(incomplete, b, offset-before, err)
		if err == nil {
			err = p.memory.Resize(p.stream.Buffered())
		}
		if err != nil || offset == before {
			return ops, nil, err
		}
		return p.save(ops)
	}
	size := 0 // of a frame that may end in b
	if bytes.IndexByte(b, '\n') >= 0 {
		p.mu.Lock()
		size = p.stream.Buffered() + len(b)
		p.mu.Unlock()
	}
	if err := run.Emitter.WithLargeFrame(size, func() error { return run.Emitter.Decode(decode) }); err != nil {
		return pr.failed(err)
	}
	if hasProgress {
		run.Emitter.ReportProgress()
	}
	pr.acknowledge(offset)
	return nil
}

// failed ends the turn if the stream is invalid or exceeds its memory. Other errors, such as a cancelled context, leave the turn running,
// and the producer may connect again. failed returns the error for the producer.
func (pr *Producer) failed(err error) error {
	if errors.Is(err, agent.ErrTurnOver) {
		return gateway.ErrTurnOver
	}
	if _, isInvalid := errors.AsType[*dialect.Error](err); isInvalid || errors.Is(err, agent.ErrBusy) {
		pr.turn.finish(err)
	}
	return err
}

// acknowledge notes the offset that is to be acknowledged.
func (pr *Producer) acknowledge(offset int64) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.offset, pr.isAcked = offset, false
	pr.startAcks()
}

// startAcks starts sendAcks if it has something to do. pr.mu is locked.
func (pr *Producer) startAcks() {
	if pr.wantsAck && !pr.isAcked && !pr.isBusy {
		pr.isBusy = pr.service.turns.spawn(pr.sendAcks)
	}
}

// sendAcks acknowledges the latest offset once the events before it are committed. It replaces an acknowledgement that was not received
// yet, so it never blocks on the connection. The offset is read before Flush: everything before it was emitted by then, so Flush covers it.
func (pr *Producer) sendAcks() {
	pr.mu.Lock()
	ack := Ack{Offset: pr.offset}
	pr.isAcked, pr.wantsAck = true, false
	pr.mu.Unlock()
	var err error
	if ack.Seq, err = pr.service.gw.PushedTurns().Flush(pr.service.turns.ctx, pr.Conversation); err == nil {
		select {
		case <-pr.acks:
		default:
		}
		pr.acks <- ack
	} // otherwise the gateway stops, or the conversation is given up; a new connection learns the offset
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.isBusy = false
	if err == nil {
		pr.startAcks()
	}
}

// Done returns a channel that is closed when readers can see the turn's end, or when this process stops running the turn, for example
// because the gateway stops.
func (pr *Producer) Done() <-chan struct{} { return pr.turn.finished }

// Acks asks for an acknowledgement of what has been written and is not acknowledged yet, or of the next Write, and returns the channel that
// will contain it. Acknowledgements that no connection asks for are not made, because each has to wait for a commit.
func (pr *Producer) Acks() <-chan Ack {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.wantsAck = true
	pr.startAcks()
	return pr.acks
}

// Answers returns the answers to the turn's requests that this connection has not got yet. added is closed when the next answer arrives.
func (pr *Producer) Answers() (answers []event.Answer, added <-chan struct{}) {
	p := pr.turn
	p.mu.Lock()
	defer p.mu.Unlock()
	answers = slices.Clone(p.answers[pr.delivered:])
	pr.delivered = len(p.answers)
	return answers, p.answersChanged
}

// Close ends the connection and starts the lease. isComplete is true if the body ended regularly, not by a lost connection. If the stream
// contained an end in its dialect, the turn has ended already. Some dialects have no such end; for them the turn ends now if the
// body is complete. In every other case the turn waits for the producer's next connection until the lease expires.
func (pr *Producer) Close(isComplete bool) error {
	p := pr.turn
	p.mu.Lock()
	if p.generation != pr.generation {
		p.mu.Unlock()
		return nil
	}
	p.startLease()
	run := p.run
	p.mu.Unlock()
	if !isComplete || run == nil {
		return nil
	}
	isEnd := false
	err := run.Emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		st, err := p.stream.State()
		if err != nil {
			return nil, nil, err
		}
		// A copy of the stream tries the last line, which may lack its end, and the end of the body. The original must be able to
		// continue.
		copied := state{Stream: st}
		probe, err := copied.restore(p.dialect)
		if err != nil {
			return nil, nil, err
		}
		if _, err = probe.Write(p.stream.Pending()); err == nil {
			_, err = probe.Close()
		}
		if err != nil {
			return nil, nil, nil // not an end
		}
		isEnd = true
		run.Emitter.CaptureReceived(p.stream.Pending())
		ops, err := p.stream.Close()
		if err != nil {
			return ops, nil, err
		}
		return p.save(ops)
	})
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		return pr.failed(err)
	}
	if isEnd {
		p.finish(nil)
	}
	return nil
}
