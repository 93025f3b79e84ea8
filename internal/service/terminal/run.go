package terminal

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// leftover is how long output is still read after the last known process of the run ended. A process that escaped the sweep
	// could otherwise keep the stream open forever.
	leftover = 2 * time.Second
	stopping = "the gateway is stopping"
)

// result is the outcome of a run.
type result struct {
	Code           *int // nil if the command didn't exit by itself
	Stdout, Stderr string
	Truncated      bool // the command printed more than [Capture]
	TimedOut       bool
	Error          string // the reason why the command couldn't run to its end
}

// Run is a running command.
type Run struct {
	ID      string
	Command string

	t      *Terminal
	emitTo func(Event)
	exit   chan struct{}

	mu     sync.Mutex // serializes emit
	result result
}

// Done is closed when the run has ended and no process of it is left.
func (r *Run) Done() <-chan struct{} { return r.exit }

// Result returns the outcome. It must not be called before Done is closed.
func (r *Run) Result() result { return r.result }

// run executes the command. It returns after the last event, when no process of the command is left.
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
	log.Info("command started", "pid", p.Pid()) // without its text, which may contain a secret
	p.WriteInput(nil)
	r.emit(Event{Kind: kindStart, Command: r.Command, MaxDurationMS: cfg.MaxDuration.Milliseconds()})
	var tasks sync.WaitGroup
	tasks.Go(func() { r.follow(p.Stdout, Stdout) })
	tasks.Go(func() { r.follow(p.Stderr, Stderr) })

	last := r.await(p, begin.Add(cfg.MaxDuration))
	if err := sweep(mark+"="+r.ID, last.descendants, nil); err != nil {
		log.Error("terminal: processes of a command may still be running", "error", err)
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

// outcome is the last event, and the descendants of the command that existed just before it was killed. Afterwards the kernel
// gives them another parent, and they couldn't be found any more.
type outcome struct {
	Event
	descendants []processInfo
}

// await waits until the command exits, exceeds its deadline or the terminal is closed, and ends it in the last two cases. A
// command that exceeds its deadline has killAfter to exit by itself.
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

// follow emits an output as events until it ends. The pause after each event limits the rate and merges what arrives meanwhile.
func (r *Run) follow(from io.Reader, kind eventKind) {
	var output decoder
	buf := make([]byte, maxFrame)
	for {
		n, err := from.Read(buf)
		if s := output.decode(buf[:n]); s != "" {
			r.emit(Event{Kind: kind, Data: s})
			time.Sleep(r.t.pause) // a rate limit, not synchronization
		}
		if err != nil { // the end of the stream, or leftover has passed
			if s := output.flush(); s != "" {
				r.emit(Event{Kind: kind, Data: s})
			}
			return
		}
	}
}

// emit adds an event to the result and passes it to the callback.
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

// appendOutput adds s to a captured output, up to [Capture] bytes.
func (r *Run) appendOutput(dst *string, s string) {
	room := Capture - len(*dst)
	if len(s) > room {
		r.result.Truncated = true
		s = new(decoder).decode([]byte(s[:room])) // drops an incomplete character at the end
	}
	*dst += s
}

// codeOf returns the exit status, or 1 if a signal ended the command, as Eliza's terminal does.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode()
	}
	return 1
}

// decoder converts bytes that arrive in pieces to text without splitting characters.
type decoder struct{ partial []byte }

// decode returns the complete characters so far. Invalid bytes become U+FFFD.
func (t *decoder) decode(b []byte) string {
	b = append(t.partial, b...)
	complete := len(b)
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				complete -= i
			}
			break
		}
	}
	s := valid(string(b[:complete]))
	t.partial = append([]byte(nil), b[complete:]...)
	return s
}

// flush returns the rest at the end of the stream. An incomplete character becomes U+FFFD.
func (t *decoder) flush() string {
	s := valid(string(t.partial))
	t.partial = nil
	return s
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
