// A conversation with a program over its standard input and output, line by line.

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
	ErrEnded = errors.New("process: exited")
	// ErrStopped says that the process didn't read a line before its sender gave up.
	ErrStopped = errors.New("process: input not read")
)

// Talk is a process that exchanges lines with the gateway until it ends. All methods are safe for concurrent use. Call Read
// once, then Queue any number of lines; End must be called in any case.
type Talk struct {
	*Process
	Aside *Aside // its standard error

	farewell   time.Duration
	input      chan []byte   // queued lines; nil closes the process's input
	outputDone chan struct{} // closed when the function passed to Read has returned
	stderrDone chan struct{} // closed when Aside is read to the end
	tasks      sync.WaitGroup

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
		input: make(chan []byte, queued), outputDone: make(chan struct{}), stderrDone: make(chan struct{}),
	}
	t.tasks.Go(t.write)
	t.tasks.Go(func() {
		defer close(t.stderrDone)
		t.Aside.ReadAll(p.Stderr)
	})
	return t, nil
}

// Read runs consume in a goroutine. consume reads the output and returns why it ended.
func (t *Talk) Read(consume func() error) {
	t.tasks.Go(func() {
		t.SetCause(consume())
		close(t.outputDone)
	})
}

// Done returns a channel that is closed when the output was read to the end.
func (t *Talk) Done() <-chan struct{} { return t.outputDone }

// OutputEnded reports whether Done is closed.
func (t *Talk) OutputEnded() bool { return isClosed(t.outputDone) }

// SetCause sets the reason why the process ended. Only the first call counts.
func (t *Talk) SetCause(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = cause
	}
}

// Cause returns the reason why the process ended. It waits for Done.
func (t *Talk) Cause() error {
	<-t.outputDone
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Queue queues a line, which must include its line end. If the queue is full, Queue blocks until stop is closed. Errors are
// [ErrEnded] and [ErrStopped].
func (t *Talk) Queue(stop <-chan struct{}, line []byte) error {
	select {
	case t.input <- line:
		return nil
	case <-t.ExitDone():
		return ErrEnded
	case <-t.outputDone:
		return ErrEnded
	case <-stop:
		return ErrStopped
	}
}

// write writes the queued lines until the process has ended. It is the only goroutine that writes to the input, so
// lines are never mixed.
func (t *Talk) write() {
	for {
		select {
		case b := <-t.input:
			if b == nil {
				_ = t.Stdin.Close()
				return
			}
			if _, err := t.Stdin.Write(b); err != nil {
				return // the process has ended or closed its input; Done reports it
			}
		case <-t.ExitDone():
			return
		}
	}
}

// Exit returns how the process ended, and the last line of its standard error, which only operators may see. The function
// passed to Read calls it at the end of the output. hasExited is false if the process is still running.
func (t *Talk) Exit() (status, last string, hasExited bool) {
	t.Await(t.farewell)
	if !t.HasExited() {
		return "", "", false
	}
	timer := time.NewTimer(lastWord)
	defer timer.Stop()
	select {
	case <-t.stderrDone:
	case <-timer.C: // a child still has the other end open
	}
	if err := t.Err(); err != nil {
		status = " with " + err.Error()
	}
	return status, t.Aside.Last(), true
}

// End ends the process and returns when its group is gone. First it closes the input, which most programs take as a
// request to exit. If the process still runs after farewell, End sends SIGTERM, and SIGKILL after Program.KillAfter.
func (t *Talk) End() {
	timer := time.NewTimer(t.farewell)
	select {
	case t.input <- nil: // after the queued lines
		t.Await(t.farewell)
	case <-t.ExitDone():
	case <-timer.C:
	}
	timer.Stop()
	t.Stop()
	<-t.ExitDone()
	t.Close(t.tasks.Wait)
}
