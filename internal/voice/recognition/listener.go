package recognition

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// maxUtterance is the length at which an utterance ends by itself, so that memory and requests are limited. Pauses count too, if the
// caller writes them.
const maxUtterance = 2 * time.Minute

const (
	// maxUtteranceBytes is maxUtterance in bytes.
	maxUtteranceBytes = int(maxUtterance/time.Second) * bytesPerSecond
	// answerLimit limits the wait for a text, or for a connection.
	answerLimit = 30 * time.Second
	// maxResults is how many results wait for the caller. Then the recognizer waits, and the audio fills the queue.
	maxResults = 16
)

// listener is what all kinds of listeners have in common: the queue of audio, the results, and the goroutine between them.
type listener struct {
	// ctx ends with the caller's context, at Close and after a failure. Its cause is the reason.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// queue has the audio that work hasn't taken yet.
	queue   *queue
	results chan voice.Result
	// closing is closed by Close. It differs from the end of ctx, after which the reason is still delivered.
	closing chan struct{}
	close   sync.Once
	// workDone is closed when the goroutine has ended.
	workDone chan struct{}
}

var _ voice.Listener = (*listener)(nil)

// newListener starts work in a goroutine. The listener ends when work returns, and its error is the last result.
func newListener(ctx context.Context, work func(*listener) error) *listener {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &listener{
		ctx: ctx, cancel: cancel, queue: newQueue(),
		results: make(chan voice.Result, maxResults), closing: make(chan struct{}), workDone: make(chan struct{}),
	}
	go func() {
		defer close(l.workDone)
		defer close(l.results)
		err := work(l)
		// The end of ctx shows up in work as various errors. Its cause is the reason.
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(err)
		l.queue.fail(err)
		if !errors.Is(err, errClosed) {
			l.emit(voice.Result{Err: err})
		}
	}()
	return l
}

// emit sends a result to the caller. It waits until the caller takes it or closes the listener.
func (l *listener) emit(r voice.Result) {
	select {
	case <-l.closing: // a closed listener sends nothing, even if there is room
		return
	default:
	}
	select {
	case l.results <- r:
	case <-l.closing:
	}
}

// Write implements [voice.Listener].
func (l *listener) Write(pcm []byte) error { return l.report(l.queue.add(pcm)) }

// EndUtterance implements [voice.Listener].
func (l *listener) EndUtterance() error { return l.report(l.queue.end()) }

// report ends the listener after an overflow, since its text would have a gap.
func (l *listener) report(err error) error {
	if errors.Is(err, errOverflow) {
		l.queue.fail(err)
		l.cancel(err)
	}
	return err
}

// Results implements [voice.Listener].
func (l *listener) Results() <-chan voice.Result { return l.results }

// Close implements [voice.Listener].
func (l *listener) Close() error {
	l.close.Do(func() {
		close(l.closing)
		l.cancel(errClosed)
		l.queue.fail(errClosed)
	})
	<-l.workDone
	return nil
}
