package channel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

const (
	// batchBudget is about how many bytes of changes a channel gets at once.
	batchBudget = 256 << 10
	// deliverAgain is the wait before a delivery is repeated that the gateway could not make.
	deliverAgain = time.Second
)

// errDraining means that a delivery ended because the gateway is shutting down and its turn has not ended.
var errDraining = errors.New("channel: the gateway is shutting down")

// wake starts the deliveries to a chat, unless they run already; then they look again before they end. It doesn't block, because
// the writers of conversations call it.
func (c *connector) wake(t *chat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.dirty = true
	if ctx := c.delivering; ctx != nil && !t.isRunning {
		t.isRunning = true
		c.pipeline.tasks.Go(func() { c.deliver(ctx, t) })
	}
}

// deliver delivers what the conversations of a chat have for it, one turn after another, until nothing is left.
func (c *connector) deliver(ctx context.Context, t *chat) {
	for {
		c.mu.Lock()
		if !t.dirty || c.delivering == nil {
			t.isRunning = false
			c.mu.Unlock()
			return
		}
		t.dirty = false
		bindings := slices.Clone(t.bindings)
		c.mu.Unlock()
		for i, b := range bindings {
			err := c.deliverConversation(ctx, t, b, i == len(bindings)-1)
			switch {
			case err == nil || ctx.Err() != nil || errors.Is(err, errDraining):
			case isDeleted(err):
				c.forget(t, b)
			default:
				c.log.Warn("delivery to a chat failed; it is repeated", "conversation", b.Conversation, "error", err)
				_ = retry.Sleep(ctx, deliverAgain) // if it fails, the next round ends
				c.wake(t)
			}
		}
	}
}

// deliverConversation delivers the turns and messages of one conversation that the chat hasn't got yet. It returns when it has
// reached the end of the log. A binding that isn't the chat's current one is removed when all its turns have been delivered.
func (c *connector) deliverConversation(ctx context.Context, t *chat, b *binding, isCurrent bool) error {
	f, err := c.pipeline.gateway.Feed(ctx, c.principalOf(b), b.Conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	var log transcript.Transcript
	at := b.Cursor
	for {
		batch, err := f.Poll(ctx, at, batchBudget)
		if err != nil {
			return err
		}
		if batch == nil {
			break
		}
		if err := batch.Apply(&log); err != nil {
			at = "" // a snapshot replaces what was lost
			continue
		}
		at = batch.Cursor
		for {
			if b.isDetached.Load() || c.pipeline.connector(c.name) == nil {
				return nil
			}
			turn, m := nextTurn(&log, b), c.nextMessage(&log, t, b)
			if m != nil && (turn == nil || m.Seq < turn.FirstSeq) {
				err = c.deliverMessage(ctx, t, b, m)
			} else if turn != nil {
				err = c.deliverTurn(ctx, t, b, f, &log, turn)
			} else {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	c.advance(&log, b, f, at)
	if !isCurrent && len(unfinished(&log)) == 0 {
		c.forget(t, b)
		return c.remove(ctx, b)
	}
	return nil
}

// nextTurn returns the first turn that has begun and was not delivered, or nil. A turn without a time is one of which the log has
// only the end, because it began before the cursor: it was delivered, or belongs to another turn.
func nextTurn(log *transcript.Transcript, b *binding) *transcript.Turn {
	_, seq, _ := b.Cursor.Parse()
	for _, turn := range log.Turns {
		if turn.FirstSeq > seq && turn.QueuedAt+turn.StartedAt > 0 && turn.State != transcript.TurnQueued && turn.Independent() && !slices.Contains(b.Delivered, turn.ID) {
			return turn
		}
	}
	return nil
}

// unfinished returns the turns that have not ended.
func unfinished(log *transcript.Transcript) []*transcript.Turn {
	return slices.DeleteFunc(slices.Clone(log.Turns), func(t *transcript.Turn) bool { return !t.Unfinished() })
}

// advance moves the cursor behind everything that was delivered, in memory: the next state that is stored contains it. Before
// that, the delivered turns are remembered by their ids.
func (c *connector) advance(log *transcript.Transcript, b *binding, f *gateway.Reader, at feed.Cursor) {
	_, seq, _ := at.Parse()
	for _, turn := range unfinished(log) {
		seq = min(seq, turn.FirstSeq-1)
	}
	if _, old, _ := b.Cursor.Parse(); seq <= old {
		return
	}
	b.Cursor = f.CursorAt(seq)
	b.Delivered = slices.DeleteFunc(b.Delivered, func(id string) bool {
		if m := log.Message(id); m != nil {
			return m.Seq <= seq
		}
		turn := log.Turn(id)
		return turn == nil || !turn.Unfinished() && turn.EndSeq <= seq
	})
}

// deliverTurn delivers one turn and stores that it was delivered. An error means that the delivery has to be repeated.
func (c *connector) deliverTurn(ctx context.Context, t *chat, b *binding, f *gateway.Reader, log *transcript.Transcript, turn *transcript.Turn) error {
	if turn.StartedAt != 0 || turn.Outcome != event.Cancelled {
		if b.Turn != turn.ID {
			b.Turn, b.State = turn.ID, nil
		}
		err := c.stream(ctx, t, b, f, turn, c.speaker(log, turn))
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errDraining), errors.Is(err, ErrStopped), isDeleted(err), errors.Is(err, feed.ErrLost):
			return err
		default:
			c.failed(ctx, b, StreamFailed{Chat: t.id, Turn: turn.ID, Seq: turn.FirstSeq, Err: err})
		}
	}
	c.mu.Lock()
	delete(t.replies, turn.Answers)
	c.mu.Unlock()
	b.Delivered = append(b.Delivered, turn.ID)
	b.Turn, b.State = "", nil
	return c.save(context.WithoutCancel(ctx), b) // also while the gateway shuts down: what was delivered isn't delivered again
}

// stream passes the events of a turn to the channel. It holds turnMu, so a shutdown waits for it.
func (c *connector) stream(ctx context.Context, t *chat, b *binding, f *gateway.Reader, turn *transcript.Turn, speak speakFunc) error {
	c.pipeline.turnMu.RLock()
	defer c.pipeline.turnMu.RUnlock()
	c.mu.Lock()
	replyTo := t.replies[turn.Answers]
	c.mu.Unlock()
	metadata := StreamMetadata{
		Conversation: b.Conversation, Turn: turn.ID, Agent: turn.Agent, ReplyTo: replyTo, State: b.State, Speak: speak,
		OpenMedia: func(ctx context.Context, m event.Media) (io.ReadCloser, error) { return c.openMedia(ctx, b, m) },
		Save: func(ctx context.Context, state any) error {
			v, err := json.Marshal(state)
			if err != nil {
				return err
			}
			b.State = v
			return c.save(ctx, b)
		},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	source := newSource(f, turn)
	events := make(chan StreamEvent)
	var sourceErr error
	sourced := make(chan struct{})
	go func() {
		defer close(sourced)
		defer close(events)
		if sourceErr = source.run(ctx, events, c.pipeline.draining); sourceErr != nil {
			cancel(sourceErr)
		}
	}()
	err := c.send(ctx, t.id, metadata, events)
	cancel(nil)
	for range events {
		// A channel that failed may have left events. The source ends, because its context has ended.
	}
	<-sourced
	if err != nil && sourceErr != nil && !errors.Is(sourceErr, context.Canceled) {
		return sourceErr
	}
	return err
}

// send delivers a turn in the form that the channel can take.
func (c *connector) send(ctx context.Context, chat string, metadata StreamMetadata, events <-chan StreamEvent) error {
	hints := StreamHints{Channel: c.name, ChatID: chat, Conversation: metadata.Conversation, Turn: metadata.Turn}
	metrics, delegate := c.pipeline.cfg.Metrics, c.pipeline.delegate
	ctx = metrics.OnStreamBegin(ctx, hints)
	rt := c.runtime()
	ch, canStream := rt.channel.(StreamChannel)
	if canStream && delegate != nil {
		ctx = delegate.OnStreamBegin(ctx, hints)
	}
	var err error
	if canStream {
		err = ch.SendStream(ctx, chat, metadata, events)
	} else {
		err = c.collapse(ctx, rt.channel, chat, metadata, events)
	}
	if canStream && delegate != nil {
		delegate.OnStreamEnd(ctx, hints, err)
	}
	metrics.OnStreamEnd(ctx, hints, err)
	return err
}
