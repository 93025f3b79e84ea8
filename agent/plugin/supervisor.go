package plugin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/base/retry"
)

// stable is how long a process must run so that its end counts as the first failure. A process that fails on every start is thus
// restarted ever more rarely.
const stable = time.Minute

// restart is the schedule of the waits between the end of a process and the start of the next one.
var restart = retry.Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second}

// supervisor keeps one process running from Start to Close. Its goroutine starts each process, waits for its end and
// restarts it.
type supervisor struct {
	program process.Program
	kind    string                                   // kindChannel, or empty for an agent
	serve   func(ctx context.Context, c *Conn) error // nil for an agent

	tasks  sync.WaitGroup
	life   context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	isStarted bool
	current   *link         // the ready process, or nil
	last      error         // if current is nil: why the last process ended
	changed   chan struct{} // closed and replaced when current or last changes
}

// newSupervisor returns a supervisor, which starts the program when it is first needed.
func newSupervisor(g process.Program) *supervisor {
	s := &supervisor{program: g, changed: make(chan struct{})}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start starts the process and keeps it running until Close. Restarts and the process's standard error go to the log. Only the
// first call has an effect.
func (s *supervisor) Start(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStarted || s.life.Err() != nil {
		return
	}
	s.isStarted = true
	s.tasks.Go(func() { s.supervise(log) })
}

// Close ends the process and returns when it has ended. Turns that wait for a process get errClosed.
func (s *supervisor) Close() {
	s.mu.Lock()
	s.cancel() // under the lock, so that Start can't start a goroutine after Wait
	s.mu.Unlock()
	s.tasks.Wait()
}

// hasStarted reports whether Start was called. Check then waits for the supervised process, and otherwise
// starts one for the check.
func (s *supervisor) hasStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isStarted
}

// supervise runs one process after another until Close, with a growing wait between them. A process that ran
// for more than a minute resets the wait, so a plugin that fails once a day is back after half a second.
func (s *supervisor) supervise(log *slog.Logger) {
	backoff := retry.Backoff{Schedule: restart}
	for s.life.Err() == nil {
		begin := time.Now()
		l, err := s.launch(s.life, log)
		if err == nil {
			log.Info("plugin is ready", "pid", l.Pid())
			s.setCurrent(l, nil)
			err = s.watch(l)
			s.setCurrent(nil, err) // before close, which may take some seconds, so that no new turn chooses this process
			l.close()
			if time.Since(begin) > stable {
				backoff.Reset()
			}
		} else {
			s.setCurrent(nil, err)
		}
		if s.life.Err() != nil {
			return
		}
		wait := backoff.Next()
		log.Warn("plugin ended; restarting it", "error", err, "after", wait.String())
		_ = retry.Sleep(s.life, wait) // the loop ends when life does
	}
}

// watch waits until the process must be replaced or closed, and returns the reason: its output ended, serve
// failed, or Close was called. When it returns, serve has returned as well.
func (s *supervisor) watch(l *link) error {
	end, serveErr := s.startServing(l)
	defer end()
	select {
	case <-l.Done():
		return l.Cause()
	case err := <-serveErr:
		l.SetCause(err)
		return err
	case <-s.life.Done():
		l.SetCause(&agent.Error{Code: codeClosed, Message: "the plugin was stopped", Retryable: true})
		return errClosed
	}
}

// startServing calls serve for a channel's process in a goroutine. serveErr receives its error, if it fails. The caller must
// call end, which cancels serve and waits for its return, because serve uses the process's lines.
func (s *supervisor) startServing(l *link) (end func(), serveErr <-chan error) {
	if s.serve == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(s.life)
	serveDone, failure := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(serveDone)
		err := s.serve(ctx, &Conn{l})
		l.deafen()
		if err != nil {
			failure <- err
		}
	}()
	return func() {
		cancel()
		<-serveDone
	}, failure
}

// launch starts a process and returns it when it is ready. If it doesn't become ready within startLimit, it is ended.
func (s *supervisor) launch(ctx context.Context, log *slog.Logger) (*link, error) {
	l, err := dial(s.program, s.kind, log)
	if err != nil {
		return nil, &agent.Error{Code: codeNotStarted, Message: "the plugin's process can't be started", Detail: err.Error(), Retryable: true}
	}
	t := time.NewTimer(startLimit)
	defer t.Stop()
	select {
	case <-l.ready:
		return l, nil
	case <-l.Done():
		err = l.Cause()
	case <-t.C:
		err = &agent.Error{Code: codeNotStarted, Message: "the plugin was not ready within " + startLimit.String(), Retryable: true}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.close()
	return nil, err
}

// setCurrent publishes the ready process, or the reason for having none, and wakes all waiting turns.
func (s *supervisor) setCurrent(l *link, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.last = l, cause
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns the ready process. While it is being restarted, await waits, at most for startLimit; then it returns the reason
// why the last process ended.
func (s *supervisor) await(ctx context.Context) (*link, error) {
	t := time.NewTimer(startLimit)
	defer t.Stop()
	for {
		// changed is read together with the state, so a change after this can't be missed.
		s.mu.Lock()
		l, last, changed := s.current, s.last, s.changed
		s.mu.Unlock()
		if l != nil && !l.OutputEnded() {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.life.Done():
			return nil, errClosed
		case <-t.C:
			if last == nil {
				last = &agent.Error{Code: codeNotStarted, Message: "the plugin did not start in time", Retryable: true}
			}
			return nil, last
		}
	}
}

// linkFor returns the process that runs a turn, or nil.
func (s *supervisor) linkFor(turn string) *link {
	s.mu.Lock()
	l := s.current
	s.mu.Unlock()
	if l == nil || l.turns.Of(turn) == nil {
		return nil
	}
	return l
}
