package gateway

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
)

// errTaken says that another connection of the producer has taken over.
var errTaken = fmt.Errorf("%w: another connection has taken over", ErrTurnOver)

// Producer is one connection that brings a pushed turn's stream in. Its methods are called from one goroutine, which
// calls Close in the end.
type Producer struct {
	Turn         string
	Conversation string
	p            *push
	writer       *writer // held until Close
	closed       sync.Once
	generation   int
	acks         chan PushAck
	told         int // of the push's answers
}

// PushAck says up to which byte of the body everything is committed, and at which seq.
type PushAck struct {
	Offset int64 `json:"offset"`
	Seq    int64 `json:"seq"`
}

// Offset returns where the producer has to go on: the end of the last frame that was taken.
func (pr *Producer) Offset() int64 {
	pr.p.mu.Lock()
	defer pr.p.mu.Unlock()
	return pr.p.state.Offset
}

func (pr *Producer) ready(ctx context.Context) error {
	select {
	case <-pr.p.started:
		return nil
	default:
	}
	select {
	case <-pr.p.started:
		return nil
	case <-pr.p.over:
		return ErrTurnOver // it was stopped while it waited in the queue
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Write takes the next bytes of the body. It blocks while the turn is queued or the log can't take more. After the
// turn's end it returns ErrTurnOver; an error that wraps *dialect.Error has failed the turn.
func (pr *Producer) Write(ctx context.Context, b []byte) error {
	if err := pr.ready(ctx); err != nil {
		return err
	}
	p := pr.p
	p.mu.Lock()
	r, gone := p.run, p.owner != pr.generation
	p.mu.Unlock()
	if gone {
		return errTaken
	}
	var offset int64
	moved := false
	decode := func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.owner != pr.generation {
			return nil, nil, errTaken
		}
		before := p.stream.Offset()
		keep := r.keeps(p.stream, b)
		ops, err := p.stream.Write(b)
		moved = p.stream.Advanced()
		offset = p.stream.Offset()
		keep(offset-before, err)
		if err == nil {
			err = p.hold.Resize(p.stream.Held())
		}
		if err != nil || offset == before {
			return ops, nil, err
		}
		return p.saved(ops)
	}
	size := 0 // of a frame that may end here
	if bytes.IndexByte(b, '\n') >= 0 {
		p.mu.Lock()
		size = p.stream.Held() + len(b)
		p.mu.Unlock()
	}
	if err := r.out.Large(size, func() error { return r.out.Decode(decode) }); err != nil {
		return pr.failed(err)
	}
	if moved {
		r.touch()
	}
	return pr.ack(ctx, offset)
}

func (pr *Producer) failed(err error) error {
	if errors.Is(err, agent.ErrTurnOver) {
		return ErrTurnOver
	}
	var bad *dialect.Error
	if errors.As(err, &bad) || errors.Is(err, agent.ErrBusy) {
		pr.p.finish(err)
	}
	return err
}

// ack sends an acknowledgement once what was handed on is committed; a newer one takes the place of one not yet read.
func (pr *Producer) ack(ctx context.Context, offset int64) error {
	return pr.writer.feedIn(ctx, 0, func(t *tx) error {
		seq := pr.writer.head + int64(len(t.events))
		t.then(func() {
			select {
			case <-pr.acks:
			default:
			}
			pr.acks <- PushAck{Offset: offset, Seq: seq}
		})
		return nil
	})
}

// Over is closed when the turn has ended, and is shown so, or when this process has given it up, as at a shutdown.
func (pr *Producer) Over() <-chan struct{} { return pr.p.over }

// Acks delivers acknowledgements, the newest only.
func (pr *Producer) Acks() <-chan PushAck { return pr.acks }

// Answers returns what people have answered to the turn's requests and this connection was not told yet, of all that were given:
// one that was lost with a connection comes again. more is closed when there is more.
func (pr *Producer) Answers() (all []event.Answer, more <-chan struct{}) {
	p := pr.p
	p.mu.Lock()
	defer p.mu.Unlock()
	all = slices.Clone(p.answers[pr.told:])
	pr.told = len(p.answers)
	return all, p.answered
}

// Close says that the connection is gone. whole is true where the body ended as bodies do. Where the dialect's own end
// was seen the turn has ended; where the dialect takes the end of the body for its end it ends now; and otherwise, since
// a cut body is not an end, the lease runs.
func (pr *Producer) Close(whole bool) error {
	defer pr.closed.Do(pr.writer.release)
	p := pr.p
	p.mu.Lock()
	if p.owner != pr.generation {
		p.mu.Unlock()
		return nil
	}
	p.arm()
	r := p.run
	p.mu.Unlock()
	if !whole || r == nil {
		return nil
	}
	ended := false
	err := r.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		st, err := p.stream.State()
		if err != nil {
			return nil, nil, err
		}
		// A last line without its end, and a decoder's verdict, are tried on a copy: the body may yet go on.
		probe, err := restored(p.d, pushState{Stream: st})
		if err != nil {
			return nil, nil, err
		}
		if _, err = probe.Write(p.stream.Pending()); err == nil {
			_, err = probe.Close()
		}
		if err != nil {
			return nil, nil, nil // not an end
		}
		ended = true
		r.out.Received(p.stream.Pending())
		ops, err := p.stream.Close()
		if err != nil {
			return ops, nil, err
		}
		return p.saved(ops)
	})
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		return pr.failed(err)
	}
	if ended {
		p.finish(nil)
	}
	return nil
}
