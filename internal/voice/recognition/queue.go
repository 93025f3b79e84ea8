package recognition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

const (
	// bytesPerSecond is the length of a second of audio.
	bytesPerSecond = 2 * voice.MicrophoneRate
	// maxQueued limits the audio that waits, in bytes: 60 s. A transcription of a long utterance takes several seconds.
	maxQueued = 60 * bytesPerSecond
	// maxItem limits how much waiting audio is joined to one item, in bytes: half a second.
	maxItem = bytesPerSecond / 2
	// maxEnds limits how many ends of utterances wait.
	maxEnds = 100
)

// item is a piece of the audio, or the end of an utterance.
type item struct {
	audio []byte
	isEnd bool
}

// queue holds the audio that the recognizer hasn't taken yet. One goroutine adds, another one takes.
type queue struct {
	mu    sync.Mutex
	items []item
	// bytes is the length of all audio in items, and ends how many items are the end of an utterance.
	bytes, ends int
	// err is why nothing is accepted any more.
	err error
	// wake has an entry if items may have been added since the last pop.
	wake chan struct{}
}

// newQueue returns an empty queue.
func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add adds a copy of audio. It never waits.
func (q *queue) add(audio []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil:
		return q.err
	case len(audio)%2 != 0:
		return errOdd
	case len(audio) == 0:
		return nil
	case q.bytes+len(audio) > maxQueued:
		return fmt.Errorf("%w: %v", errOverflow, time.Duration(q.bytes)*time.Second/bytesPerSecond)
	}
	q.bytes += len(audio)
	// Browsers send frames of 20 ms. Joined, they cost a slow recognizer fewer requests or frames.
	if n := len(q.items); n > 0 && !q.items[n-1].isEnd && len(q.items[n-1].audio)+len(audio) <= maxItem {
		q.items[n-1].audio = append(q.items[n-1].audio, audio...)
	} else {
		q.items = append(q.items, item{audio: append([]byte(nil), audio...)})
	}
	q.signal()
	return nil
}

// end adds the end of an utterance.
func (q *queue) end() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	if q.ends >= maxEnds {
		return fmt.Errorf("%w: %d utterances", errOverflow, q.ends)
	}
	q.ends++
	q.items = append(q.items, item{isEnd: true})
	q.signal()
	return nil
}

// fail drops all audio and makes add and end return err.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.items, q.bytes = nil, 0
}

// signal wakes the taker.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the next item. If idle passes first, ok is false. idle 0 means no limit.
func (q *queue) take(ctx context.Context, idle time.Duration) (next item, ok bool, err error) {
	var expired <-chan time.Time
	if idle > 0 {
		timer := time.NewTimer(idle)
		defer timer.Stop()
		expired = timer.C
	}
	for {
		if next, ok := q.pop(); ok {
			return next, true, nil
		}
		select {
		case <-q.wake:
		case <-expired:
			return item{}, false, nil
		case <-ctx.Done():
			return item{}, false, context.Cause(ctx)
		}
	}
}

// pop removes the first item.
func (q *queue) pop() (next item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	next, q.items = q.items[0], q.items[1:]
	q.bytes -= len(next.audio)
	if next.isEnd {
		q.ends--
	}
	return next, true
}
