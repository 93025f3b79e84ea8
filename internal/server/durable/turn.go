// The view of a turn: its answer as a stream that is closed when the turn has ended.

package durable

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

// turn answers GET and HEAD of a turn.
func (s *surface) turn(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := r.PathValue("turn")
	conversation, _, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, id)
	if err != nil {
		return err
	}
	st := &turnStream{gw: s.gw, principal: p, conversation: conversation, turn: id}
	if r.Method == http.MethodHead {
		return s.head(w, r, st)
	}
	return s.answerRead(w, r, p, st)
}

// turnStream is a turn as a stream. Its offsets are the numbers of the operations of its answer, which depend on the
// log alone.
type turnStream struct {
	gw                 *gateway.Gateway
	principal          gateway.Principal
	conversation, turn string
}

var _ stream = (*turnStream)(nil)

// errEnough ends a reading that has enough.
var errEnough = errors.New("durable: enough")

func (s *turnStream) describe(ctx context.Context) (description, error) {
	d := description{id: s.turn, contentType: typeJSON, isMerged: true}
	err := s.follow(ctx, offsetStart, receiver{chunk: func(c *chunk) (bool, error) {
		d.tail, d.isClosed = c.next, c.isClosed
		return c.isUpToDate, nil
	}})
	return d, err
}

func (s *turnStream) follow(ctx context.Context, after string, to receiver) error {
	// The head of the log decides when everything that exists was read. It is taken before, so that the reading ends.
	c, err := s.gw.Conversation(ctx, s.principal, gateway.ActionRead, s.conversation)
	if err != nil {
		return err
	}
	number := int64(-1)
	if after != offsetStart {
		var log string
		if number, log, err = parseOffset(after); err != nil {
			return err
		}
		if !sameLog(log, c.Epoch) {
			return server.Errorf(http.StatusGone, server.ReasonNotFound, "the gateway was restored from a backup since this offset; begin with offset=%s", offsetStart)
		}
	}
	t := &turnReader{to: to, epoch: c.Epoch, head: c.Head, number: number}
	err = follow.Answer{
		Op: t.op, Flush: t.flush, Ticks: to.ticks, Tick: func() error {
			return stopError(to.tick())
		},
	}.Follow(ctx, s.gw, s.principal, s.conversation, s.turn, number)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, follow.ErrNoTurn):
		return gateway.ErrNotFound
	}
	return err
}

// turnReader makes chunks of the operations of an answer.
type turnReader struct {
	to    receiver
	epoch string
	// Seq of the conversation's last event when the reading began.
	head int64
	// Of the last operation that the client has.
	number  int64
	pending []event.Event
	answer  *answer.Answer
	isBegun bool
}

func (t *turnReader) op(a *answer.Answer, op *answer.Op) error {
	t.answer = a
	if op.IsReceived {
		return nil
	}
	t.pending, t.number = append(t.pending, op.Event), op.Number
	return nil
}

// flush passes the operations so far. The first chunk is passed also without any, when everything that existed was
// read.
func (t *turnReader) flush() error {
	if t.answer == nil {
		return nil
	}
	c := &chunk{next: formatOffset(max(t.number, 0), t.epoch), isUpToDate: t.answer.Upto() >= t.head, isClosed: t.answer.HasEnded()}
	c.isUpToDate = c.isUpToDate || c.isClosed
	if len(t.pending) == 0 && (t.isBegun || !c.isUpToDate) && !c.isClosed {
		return nil
	}
	t.isBegun = true
	data, err := appendRecords(nil, t.pending)
	if err != nil {
		return err
	}
	if t.pending = nil; len(data) > 0 {
		c.messages = []message{{data, c.next}}
	}
	return stopError(t.to.chunk(c))
}

// stopError returns the error that ends a reading, or nil if it continues.
func stopError(isEnough bool, err error) error {
	if err == nil && isEnough {
		return errEnough
	}
	return err
}
