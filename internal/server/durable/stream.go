package durable

import (
	"context"
	"time"
)

// stream is a stream that a request reads. It belongs to one request, and only one goroutine uses it.
type stream interface {
	// describe returns the state of the stream now.
	describe(ctx context.Context) (description, error)
	// follow passes what follows an offset, which may be the start but no other reserved one: first what exists, and
	// then what is added. It returns when the receiver has enough, when the stream is closed and passed completely,
	// or when ctx ends.
	follow(ctx context.Context, after string, to receiver) error
}

// description is the state of a stream.
type description struct {
	// id identifies the data: a stream that is deleted and created again has another one.
	id          string
	contentType string
	// The offset after the last message.
	tail     string
	isClosed bool
	// isMerged says that a later read may return the same data in other pieces.
	isMerged bool
}

// receiver gets the data of a stream.
type receiver struct {
	// chunk gets what exists, which may be nothing, and then each addition. It returns true when it has enough.
	chunk func(*chunk) (isEnough bool, err error)
	// tick is called for each value of ticks while the stream waits. Both may be nil.
	tick  func() (isEnough bool, err error)
	ticks <-chan time.Time
}

// chunk is a part of a stream.
type chunk struct {
	messages []message
	// The offset after the messages.
	next string
	// isUpToDate says that nothing follows now, and isClosed that nothing will follow.
	isUpToDate, isClosed bool
}

// message is what was appended at once, or a batch of events. In streams of JSON, data has the values without the
// brackets around them.
type message struct {
	data []byte
	next string
}

// poll implements follow for a stream that is read on demand. changed returns a channel that is closed at the next
// addition. It is called before next, so that no addition between the two is missed. next returns what follows its
// last result.
func poll(ctx context.Context, to receiver, changed func() <-chan struct{}, next func(ctx context.Context) (*chunk, error)) error {
	for isFirst := true; ; isFirst = false {
		addition := changed()
		c, err := next(ctx)
		if err != nil {
			return err
		}
		if isFirst || len(c.messages) > 0 || c.isClosed {
			if isEnough, err := to.chunk(c); isEnough || err != nil {
				return err
			}
		}
		if c.isClosed {
			return nil
		}
		if !c.isUpToDate {
			continue
		}
		if isEnough, err := to.wait(ctx, addition); isEnough || err != nil {
			return err
		}
	}
}

// wait returns when the channel is closed.
func (to receiver) wait(ctx context.Context, changed <-chan struct{}) (isEnough bool, err error) {
	for {
		select {
		case <-changed:
			return false, nil
		case <-to.ticks:
			if isEnough, err := to.tick(); isEnough || err != nil {
				return isEnough, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
