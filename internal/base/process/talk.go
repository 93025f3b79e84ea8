package process

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// queued is how many lines may wait, to a process or for a listener; whoever has one more waits.
	queued = 64
	// lastWord is how long its standard error is read on once a process has ended.
	lastWord = time.Second
)

var (
	// ErrEnded says that the process has ended.
	ErrEnded = errors.New("process: it has ended")
	// ErrStopped says that a line was not taken before its sender had enough.
	ErrStopped = errors.New("process: it does not read its input")
)

// Talk is a process that is spoken with by lines for as long as it lives. All methods may be called from several goroutines.
type Talk struct {
	*Process
	Aside *Aside // what it prints beside

	farewell time.Duration
	out      chan []byte
	done     chan struct{}
	heard    chan struct{} // closed when all that it printed beside is read
	tasks    sync.WaitGroup

	mu    sync.Mutex
	cause error
}

// StartTalk starts a program that has farewell to end once its input has ended. Whoever does calls Read, and in the end End.
func StartTalk(g Program, farewell time.Duration, log *slog.Logger) (*Talk, error) {
	p, err := Start(g)
	if err != nil {
		return nil, err
	}
	t := &Talk{
		Process: p, Aside: &Aside{Log: log}, farewell: farewell,
		out: make(chan []byte, queued), done: make(chan struct{}), heard: make(chan struct{}),
	}
	t.tasks.Go(t.write)
	t.tasks.Go(func() {
		defer close(t.heard)
		t.Aside.ReadAll(p.Stderr)
	})
	return t, nil
}

// Read has the output read beside the caller. read returns why there is no more of it.
func (t *Talk) Read(read func() error) {
	t.tasks.Go(func() {
		t.Blame(read())
		close(t.done)
	})
}

// Done is closed when nothing more is read from it.
func (t *Talk) Done() <-chan struct{} { return t.done }

// Silent reports whether nothing more is read from it.
func (t *Talk) Silent() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Blame says why the process is over, of which the first counts.
func (t *Talk) Blame(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = why
	}
}

// Why is why the process is over, once nothing more is read from it.
func (t *Talk) Why() error {
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Hand queues a line, with its end. It waits while the process does not read, until stop is closed. Errors are [ErrEnded] and
// [ErrStopped].
func (t *Talk) Hand(stop <-chan struct{}, line []byte) error {
	select {
	case t.out <- line:
		return nil
	case <-t.Ended():
		return ErrEnded
	case <-t.done:
		return ErrEnded
	case <-stop:
		return ErrStopped
	}
}

// write hands the lines on.
func (t *Talk) write() {
	for {
		select {
		case b := <-t.out:
			if b == nil {
				_ = t.Stdin.Close()
				return
			}
			if _, err := t.Stdin.Write(b); err != nil {
				return // it has closed its input, or has ended; done tells
			}
		case <-t.Ended():
			return
		}
	}
}

// Exit is for read, at the end of the output: how the process ended, and what it printed last, which only operators see. It reports
// false for a process that goes on.
func (t *Talk) Exit() (how, last string, ended bool) {
	t.Await(t.farewell)
	if !t.Over() {
		return "", "", false
	}
	late := time.NewTimer(lastWord)
	defer late.Stop()
	select {
	case <-t.heard:
	case <-late.C: // something that it started holds the other end
	}
	if err := t.Err(); err != nil {
		how = " with " + err.Error()
	}
	return how, t.Aside.Last(), true
}

// End ends the process and returns when it and its group are gone: its input ends, after a while it is told to end, and then made
// to.
func (t *Talk) End() {
	late := time.NewTimer(t.farewell)
	select {
	case t.out <- nil: // behind what it is to read yet
		t.Await(t.farewell)
	case <-t.Ended():
	case <-late.C:
	}
	late.Stop()
	t.Stop()
	<-t.Ended()
	t.Close(t.tasks.Wait)
}
