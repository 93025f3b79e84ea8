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

const (
	// stable is how long a process has to last so that its end is taken for the first.
	stable = time.Minute
)

// restart is the schedule for a process that has ended.
var restart = retry.Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second}

// supervisor keeps a process running.
type supervisor struct {
	program process.Program
	kind    string
	serve   func(ctx context.Context, c *Conn) error // of a channel

	tasks  sync.WaitGroup
	life   context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	isStarted bool
	current   *link         // ready; nil where none is
	last      error         // why there is none
	changed   chan struct{} // closed, and made anew, when current or last changes
}

func newSupervisor(g process.Program) *supervisor {
	s := &supervisor{program: g, changed: make(chan struct{})}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start starts the process and keeps it running until Close. What becomes of it and what it prints goes to the log. A
// second call does nothing.
func (s *supervisor) Start(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStarted || s.life.Err() != nil {
		return
	}
	s.isStarted = true
	s.tasks.Go(func() { s.supervise(log) })
}

// Close ends the process and returns when it is gone.
func (s *supervisor) Close() {
	s.mu.Lock()
	s.cancel() // under the lock, so that none is started after it
	s.mu.Unlock()
	s.tasks.Wait()
}

func (s *supervisor) hasStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isStarted
}

// keep runs one process after another.
func (s *supervisor) supervise(log *slog.Logger) {
	backoff := retry.Backoff{Schedule: restart}
	for s.life.Err() == nil {
		begin := time.Now()
		l, err := s.launch(s.life, log)
		if err == nil {
			log.Info("plugin is ready", "pid", l.Pid())
			s.setCurrent(l, nil)
			err = s.watch(l)
			s.setCurrent(nil, err)
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
		log.Warn("plugin ended and is started again", "error", err, "after", wait.String())
		_ = retry.Sleep(s.life, wait) // the loop ends when life does
	}
}

// watch returns when the process is over, or to be closed, and why.
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
		return ErrClosed
	}
}

// served has a channel served, and returns what ends that. broken gets why it can't be served any more.
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

// launch starts a process and returns it when it is ready.
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
		err = &agent.Error{Code: codeNotStarted, Message: "the plugin did not say within " + startLimit.String() + " that it is ready", Retryable: true}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.close()
	return nil, err
}

func (s *supervisor) setCurrent(l *link, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.last = l, cause
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns the process that is ready. It waits for one, but not longer than a process may take to start.
func (s *supervisor) await(ctx context.Context) (*link, error) {
	t := time.NewTimer(startLimit)
	defer t.Stop()
	for {
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
			return nil, ErrClosed
		case <-t.C:
			if last == nil {
				last = &agent.Error{Code: codeNotStarted, Message: "the plugin did not start in time", Retryable: true}
			}
			return nil, last
		}
	}
}

// running returns the process that answers a turn; nil where none does.
func (s *supervisor) linkFor(turn string) *link {
	s.mu.Lock()
	l := s.current
	s.mu.Unlock()
	if l == nil || l.turns.Of(turn) == nil {
		return nil
	}
	return l
}
