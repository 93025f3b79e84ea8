package process

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// queued is the number of lines that may wait for a process or a listener before the sender blocks.
	queued = 64
	// lastWord is how long standard error is read after the process has ended.
	lastWord = time.Second
)

var (
	// ErrEnded says that the process has ended.
	ErrEnded = errors.New("process: it has ended")
	// ErrStopped says that the process didn't read a line before its sender gave up.
	ErrStopped = errors.New("process: it does not read its input")
)

// Talk is a process that exchanges lines with the gateway for as long as it lives. All methods are safe for concurrent use.
type Talk struct {
	*Process
	Aside *Aside // its standard error

	farewell time.Duration
	out      chan []byte
	done     chan struct{}
	heard    chan struct{} // closed when Aside is read to the end
	tasks    sync.WaitGroup

	mu    sync.Mutex
	cause error
}

// StartTalk starts a program. After its input is closed, it has farewell to exit. The caller must call Read, and End at the end.
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

// Read runs read in a goroutine. read consumes the output and returns why that ended.
func (t *Talk) Read(read func() error) {
	t.tasks.Go(func() {
		t.Blame(read())
		close(t.done)
	})
}

// Done returns a channel that is closed when the output was read to the end.
func (t *Talk) Done() <-chan struct{} { return t.done }

// Silent reports whether Done is closed.
func (t *Talk) Silent() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Blame sets the reason why the process ended. Only the first call counts.
func (t *Talk) Blame(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = why
	}
}

// Why returns the reason why the process ended. It waits for Done.
func (t *Talk) Why() error {
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Hand queues a line, which must include its line end. If the queue is full, Hand blocks until stop is closed. Errors are
// [ErrEnded] and [ErrStopped].
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

// write writes the queued lines.
func (t *Talk) write() {
	for {
		select {
		case b := <-t.out:
			if b == nil {
				_ = t.Stdin.Close()
				return
			}
			if _, err := t.Stdin.Write(b); err != nil {
				return // the process has ended or closed its input; done reports it
			}
		case <-t.Ended():
			return
		}
	}
}

// Exit returns how the process ended, and the last line of its standard error, which only operators may see. The function read
// calls it at the end of the output. It returns false if the process is still running.
func (t *Talk) Exit() (how, last string, ended bool) {
	t.Await(t.farewell)
	if !t.Over() {
		return "", "", false
	}
	late := time.NewTimer(lastWord)
	defer late.Stop()
	select {
	case <-t.heard:
	case <-late.C: // a child still has the other end open
	}
	if err := t.Err(); err != nil {
		how = " with " + err.Error()
	}
	return how, t.Aside.Last(), true
}

// End ends the process and returns when its group is gone. It closes the input, after farewell sends SIGTERM, and then SIGKILL.
func (t *Talk) End() {
	late := time.NewTimer(t.farewell)
	select {
	case t.out <- nil: // after the queued lines
		t.Await(t.farewell)
	case <-t.Ended():
	case <-late.C:
	}
	late.Stop()
	t.Stop()
	<-t.Ended()
	t.Close(t.tasks.Wait)
}
