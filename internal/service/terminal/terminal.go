package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultMaxDuration is the default time limit of a command, MaxMaxDuration the highest that can be configured.
	DefaultMaxDuration = 5 * time.Minute
	MaxMaxDuration     = time.Hour
	// DefaultMaxRuns is the default number of concurrent commands, MaxMaxRuns the highest that can be configured.
	DefaultMaxRuns = 2
	MaxMaxRuns     = 16
	// MaxCommand limits the length of a command, in UTF-16 units as JavaScript clients count it.
	MaxCommand = 4096
	// Capture limits each captured output of a command, in bytes.
	Capture = 128 << 10
)

const (
	// maxFrame limits the output in one event, in bytes before invalid ones are replaced.
	maxFrame = 32 << 10
	// framePause is the minimum time between two events of one output.
	framePause = 20 * time.Millisecond
	// killAfter is how long a command may take to exit after it exceeded its time limit.
	killAfter = 2 * time.Second
)

// Config configures a [Terminal]. The zero value uses the defaults.
type Config struct {
	MaxDuration time.Duration
	MaxRuns     int
	// Data is the gateway's data folder, by which [Sweep] recognizes its commands. If it is empty, Sweep can't find them.
	Data string
	Log  *slog.Logger
}

// Terminal runs commands. All methods are safe for concurrent use.
type Terminal struct {
	cfg   Config
	shell string
	// folder is the mark for the data folder, or empty.
	folder string
	pause  time.Duration
	grace  time.Duration
	// expires is context.WithDeadline. Tests replace it.
	expires func(context.Context, time.Time) (context.Context, context.CancelFunc)

	ctx   context.Context // ends at Close
	close context.CancelFunc

	mu      sync.Mutex
	closed  bool
	runs    int
	runners sync.WaitGroup
}

// New returns a terminal. It fails if the system has no supported shell.
func New(c Config) (*Terminal, error) {
	c.MaxDuration, c.MaxRuns = cmp.Or(c.MaxDuration, DefaultMaxDuration), cmp.Or(c.MaxRuns, DefaultMaxRuns)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if !supported {
		return nil, errNoShell
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoShell, err)
	}
	t := &Terminal{cfg: c, shell: sh, pause: framePause, grace: killAfter, expires: context.WithDeadline}
	if c.Data != "" {
		if t.folder, err = folder(c.Data); err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
	}
	t.ctx, t.close = context.WithCancel(context.Background())
	return t, nil
}

// MaxDuration returns the time limit of a command.
func (t *Terminal) MaxDuration() time.Duration { return t.cfg.MaxDuration }

// Run starts a command and returns immediately. emit receives all events of the run, one at a time, from the run's goroutines.
// While emit blocks, the command blocks on its output, and Close waits. The error is [ErrBusy] or [ErrClosed].
func (t *Terminal) Run(command string, emit func(Event)) (*Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, ErrClosed
	case t.runs >= t.cfg.MaxRuns:
		return nil, ErrBusy
	}
	t.runs++
	r := &Run{
		ID: fmt.Sprintf("run-%d-%s", time.Now().UnixMilli(), strings.ToLower(rand.Text()[:12])), Command: command,
		t: t, emitTo: emit, exit: make(chan struct{}),
	}
	t.runners.Go(func() {
		r.run()
		t.mu.Lock()
		t.runs--
		t.mu.Unlock()
		close(r.exit)
	})
	return r, nil
}

// Close ends all runs and returns when none of their processes is left. Later calls of Run fail.
func (t *Terminal) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.close()
	t.runners.Wait()
}

// environment returns the variables for a command: a fixed list that contains no secrets, and the marks.
func environment(run, folder string) []string {
	env := []string{mark + "=" + run, "TERM=dumb"}
	if folder != "" {
		env = append(env, folderMark+"="+folder)
	}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// eventKind is the kind of an event.
type eventKind string

// The kinds of events, in the order of a run. Clients receive them, so they must not change.
const (
	kindStart   eventKind = "start"
	Stdout      eventKind = "stdout"
	Stderr      eventKind = "stderr"
	kindExit    eventKind = "exit"
	kindTimeout eventKind = "timeout" // the command exceeded MaxDuration and was ended
	kindFailed  eventKind = "error"   // the command couldn't be started, or the gateway stopped
)

// Event is one step of a run. Its JSON is the frame that Eliza's clients expect.
type Event struct {
	Type          string    `json:"type"` // always terminal-output
	Run           string    `json:"runId"`
	Kind          eventKind `json:"event"`
	Command       string    `json:"command,omitempty"`       // only in start
	Data          string    `json:"data,omitempty"`          // only in stdout, stderr and error
	Code          *int      `json:"code,omitempty"`          // only in exit; 1 if a signal ended the command
	MaxDurationMS int64     `json:"maxDurationMs,omitempty"` // only in start and timeout
}
