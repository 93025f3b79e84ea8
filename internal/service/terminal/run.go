package terminal

import (
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// leftover is how long an output that somebody else still holds is read after the last process of the run is gone.
	leftover = 2 * time.Second
	stopping = "the gateway is stopping"
)

// Result is how a run ended.
type result struct {
	Code           *int // nil where it did not end by itself
	Stdout, Stderr string
	Truncated      bool // it printed more than is kept here
	TimedOut       bool
	Error          string // why it could not run to its end
}

// Run is a command that runs.
type Run struct {
	ID      string
	Command string

	t      *Terminal
	emitTo func(Event)
	exit   chan struct{}

	mu     sync.Mutex // one event at a time
	result result
}

// Done is closed when the run has ended and nothing of it is left.
func (r *Run) Done() <-chan struct{} { return r.exit }

// Result is for after Done.
func (r *Run) Result() result { return r.result }

func (r *Run) run() {
	cfg := r.t.cfg
	log := cfg.Log.With("run", r.ID)
	if r.t.ctx.Err() != nil {
		r.emit(Event{Kind: kindFailed, Data: stopping})
		return
	}
	p, err := process.Start(process.Program{
		Path: r.t.shell, Command: []string{"sh", "-c", r.Command}, Env: environment(r.ID, r.t.folder), KillAfter: r.t.grace,
	})
	if err != nil {
		log.Warn("command can't be started", "error", err)
		r.emit(Event{Kind: kindFailed, Data: err.Error()})
		return
	}
	begin := time.Now()
	log.Info("command started", "pid", p.Pid()) // not its text, which may hold a secret
	p.WriteInput(nil)
	r.emit(Event{Kind: kindStart, Command: r.Command, MaxDurationMS: cfg.MaxDuration.Milliseconds()})
	var tasks sync.WaitGroup
	tasks.Go(func() { r.follow(p.Stdout, Stdout) })
	tasks.Go(func() { r.follow(p.Stderr, Stderr) })

	last := r.await(p, begin.Add(cfg.MaxDuration))
	if err := sweep(mark+"="+r.ID, last.descendants, nil); err != nil {
		log.Error("a process of a command may be left", "error", err)
	}
	giveUp := time.AfterFunc(leftover, func() { p.Stdout.GiveUp(); p.Stderr.GiveUp() })
	tasks.Wait()
	giveUp.Stop()
	p.Close(func() {})
	if last.Kind == kindExit {
		code := codeOf(p.Err())
		last.Code = &code
	}
	log.Info("command ended", "how", string(last.Kind), "took", time.Since(begin))
	r.emit(last.Event)
}

// ending is the last event, and the processes that came of the command as far as they were known before it was killed.
type outcome struct {
	Event
	descendants []processInfo
}

// await waits until the command has ended, by itself or not.
func (r *Run) await(p *process.Process, deadline time.Time) outcome {
	ctx, cancel := r.t.expires(r.t.ctx, deadline)
	defer cancel()
	select {
	case <-p.ExitDone():
		return outcome{Event: Event{Kind: kindExit}}
	case <-ctx.Done():
	}
	descendants := descendantsOf(p.Pid())
	if r.t.ctx.Err() != nil {
		p.Kill()
		<-p.ExitDone()
		return outcome{Event{Kind: kindFailed, Data: stopping}, descendants}
	}
	p.Stop()
	select {
	case <-p.ExitDone():
	case <-r.t.ctx.Done():
		p.Kill()
		<-p.ExitDone()
	}
	limit := r.t.cfg.MaxDuration
	return outcome{Event{Kind: kindTimeout, MaxDurationMS: limit.Milliseconds()}, descendants}
}

// follow tells of an output until it ends. It pauses after each event, so that what comes meanwhile is told as one.
func (r *Run) follow(from io.Reader, kind eventKind) {
	var output decoder
	buf := make([]byte, maxFrame)
	for {
		n, err := from.Read(buf)
		if s := output.decode(buf[:n]); s != "" {
			r.emit(Event{Kind: kind, Data: s})
			time.Sleep(r.t.pause) // this is the pace, and short
		}
		if err != nil { // the end, or nobody waits for the rest
			if s := output.flush(); s != "" {
				r.emit(Event{Kind: kind, Data: s})
			}
			return
		}
	}
}

// emit hands an event on, and keeps of it what the result has.
func (r *Run) emit(e Event) {
	e.Type, e.Run = "terminal-output", r.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case Stdout:
		r.appendOutput(&r.result.Stdout, e.Data)
	case Stderr:
		r.appendOutput(&r.result.Stderr, e.Data)
	case kindExit:
		r.result.Code = e.Code
	case kindTimeout:
		r.result.TimedOut = true
	case kindFailed:
		r.result.Error = e.Data
	}
	r.emitTo(e)
}

func (r *Run) appendOutput(dst *string, s string) {
	room := Capture - len(*dst)
	if len(s) > room {
		r.result.Truncated = true
		s = trimPartial(s[:room])
	}
	*dst += s
}

// whole cuts half a character off the end of a text that was cut.
func trimPartial(s string) string {
	var t decoder
	return t.decode([]byte(s))
}

// codeOf is the exit status; 1, as Eliza has it, for what a signal ended.
func codeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit), exit.ExitCode() < 0:
		return 1
	}
	return exit.ExitCode()
}
