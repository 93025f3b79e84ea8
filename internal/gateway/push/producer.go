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

// Producer is one connection that pushes a turn's stream. Its methods are called by one goroutine, which calls Close last; only Over,
// Acks and Answers may be called by others too.
type Producer struct {
	Turn         string
	Conversation string

	service    *Service
	turn       *turn
	generation int
	acks       chan Ack

	mu      sync.Mutex
	offset  int64 // to be acknowledged
	isAcked bool  // offset was acknowledged
	isBusy  bool  // the goroutine that acknowledges runs

	delivered int // how many of the turn's answers this connection got
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

// ready waits until the turn runs.
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

// Write accepts the next bytes of the body. It blocks while the turn is queued or too much waits to be committed. After the turn's end it
// returns ErrTurnOver. An error that wraps *dialect.Error has failed the turn.
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
		before := p.stream.Offset()
		capture := p.capture(b)
		ops, err := p.stream.Write(b)
		hasProgress = p.stream.Advanced()
		offset = p.stream.Offset()
		capture(offset-before, err)
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

// failed ends the turn if err is the stream's fault.
func (pr *Producer) failed(err error) error {
	if errors.Is(err, agent.ErrTurnOver) {
		return gateway.ErrTurnOver
	}
	var invalid *dialect.Error
	if errors.As(err, &invalid) || errors.Is(err, agent.ErrBusy) {
		pr.turn.finish(err)
	}
	return err
}

// acknowledge sends an acknowledgement once what was emitted is committed. It returns at once. Offsets that follow each other quickly
// share an acknowledgement.
func (pr *Producer) acknowledge(offset int64) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.offset, pr.isAcked = offset, false
	if !pr.isBusy {
		pr.isBusy = pr.service.turns.spawn(pr.sendAcks)
	}
}

// sendAcks sends acknowledgements until the latest offset is acknowledged. One that was not received yet is replaced.
func (pr *Producer) sendAcks() {
	for {
		pr.mu.Lock()
		if pr.isAcked {
			pr.isBusy = false
			pr.mu.Unlock()
			return
		}
		ack := Ack{Offset: pr.offset}
		pr.isAcked = true
		pr.mu.Unlock()
		var err error
		if ack.Seq, err = pr.service.gw.PushedTurns().Flush(pr.service.turns.ctx, pr.Conversation); err != nil {
			pr.mu.Lock()
			pr.isBusy = false
			pr.mu.Unlock()
			return // the gateway stops, or the conversation is given up; a new connection learns the offset
		}
		select {
		case <-pr.acks:
		default:
		}
		pr.acks <- ack
	}
}

// Over returns a channel that is closed when the turn's end is shown, or when this process has given the turn up, for example because it
// stops.
func (pr *Producer) Done() <-chan struct{} { return pr.turn.finished }

// Acks returns the channel of acknowledgements. It has the latest one only.
func (pr *Producer) Acks() <-chan Ack { return pr.acks }

// Answers returns the answers to the turn's requests that this connection has not got yet. The channel is closed when there are more.
func (pr *Producer) Answers() (answers []event.Answer, added <-chan struct{}) {
	p := pr.turn
	p.mu.Lock()
	defer p.mu.Unlock()
	answers = slices.Clone(p.answers[pr.delivered:])
	pr.delivered = len(p.answers)
	return answers, p.answersChanged
}

// Close ends the connection. isComplete is true if the body ended regularly. If the dialect's own end was decoded, the turn has ended
// already. If the end of the body is the end of the stream in this dialect, the turn ends now. Otherwise an interrupted body is not an
// end, and the lease starts.
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
