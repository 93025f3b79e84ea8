package terminal

import (
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
	// DefaultMaxDuration is how long a command may run, MaxMaxDuration the longest that can be set.
	DefaultMaxDuration = 5 * time.Minute
	MaxMaxDuration     = time.Hour
	// DefaultMaxRuns is how many commands may run at once, MaxMaxRuns the most that can be set.
	DefaultMaxRuns = 2
	MaxMaxRuns     = 16
	// MaxCommand bounds a command, in UTF-16 units as JavaScript counts them.
	MaxCommand = 4096
	// Capture is how much of each output of a command is kept for [Result], in bytes.
	Capture = 128 << 10
)

const (
	// maxFrame is how much output one event has at most, in bytes before what is no UTF-8 was replaced.
	maxFrame = 32 << 10
	// framePause is the time from one event of an output to the next.
	framePause = 20 * time.Millisecond
	// killAfter is how long a command whose time is up may take to end by itself.
	killAfter = 2 * time.Second
)

// Config says how commands are run. The zero value has the defaults.
type Config struct {
	MaxDuration time.Duration
	MaxRuns     int
	// Data is the gateway's data folder, by which [Sweep] knows its commands; empty is none.
	Data string
	Log  *slog.Logger
}

// Terminal runs commands. Its methods may be called from several goroutines.
type Terminal struct {
	cfg   Config
	shell string
	// folder is how commands are marked with the data folder; empty where there is none.
	folder string
	pause  time.Duration
	grace  time.Duration
	// expires is context.WithDeadline, but in tests.
	expires func(context.Context, time.Time) (context.Context, context.CancelFunc)

	ctx   context.Context // ends when it is closed
	close context.CancelFunc

	mu      sync.Mutex
	closed  bool
	runs    int
	runners sync.WaitGroup
}

// New returns a terminal. It starts nothing.
func New(c Config) (*Terminal, error) {
	if c.MaxDuration == 0 {
		c.MaxDuration = DefaultMaxDuration
	}
	if c.MaxRuns == 0 {
		c.MaxRuns = DefaultMaxRuns
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
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

// MaxDuration is how long a command may run.
func (t *Terminal) MaxDuration() time.Duration { return t.cfg.MaxDuration }

// Run starts a command. It returns before there is a process, which emit is told of as of all that follows: one event at a
// time, from goroutines of the run. While emit does not return, the command waits with what it prints, and Close for it. Errors are [ErrBusy]
// and [ErrClosed].
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

// Close ends all runs, and returns when nothing of them is left. Later ones are refused.
func (t *Terminal) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.close()
	t.runners.Wait()
}

// environment is what a command sees: nothing that may hold a secret of the gateway's, and the marks of its run and of the data folder.
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
