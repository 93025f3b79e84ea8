//go:build unix

package killer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// world is one storm: a program that is ended repeatedly, with its users.
type world struct {
	t       *testing.T
	seed    uint64
	program *program
	client  *leat.Client
	trace   trace

	ctx    context.Context // ends with the first failure
	cancel context.CancelFunc
	calm   chan struct{} // closed when no new turns are to begin
	tasks  sync.WaitGroup

	mu       sync.Mutex
	failures []string
	expected map[string]map[string]*answer // conversation: turn
}

// worldLimit bounds a test: a long storm takes five minutes.
const worldLimit = 40 * time.Minute

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, seed: seed(t), calm: make(chan struct{}), expected: map[string]map[string]*answer{}}
	w.trace.begin = time.Now()
	w.ctx, w.cancel = context.WithTimeout(t.Context(), worldLimit)
	t.Cleanup(func() {
		w.cancel()
		w.tasks.Wait()
		if t.Failed() || os.Getenv("LEAT_TRACE") != "" {
			t.Logf("seed %d (LEAT_SEED=%d repeats it); what happened:\n%s", w.seed, w.seed, w.trace.String())
			if w.program != nil {
				t.Logf("the program said:\n%s", w.program.said())
			}
		}
	})
	return w
}

func seed(t *testing.T) uint64 {
	s, ok := os.LookupEnv("LEAT_SEED")
	if !ok {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("LEAT_SEED: %v", err)
	}
	return n
}

// rng returns a separate random source for each name, so that one user's draws don't change another's.
func (w *world) rng(name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

// fail records a failure and ends the storm. Failures that follow from the end are not recorded.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t.Context().Err() != nil {
		return
	}
	if len(w.failures) < 10 {
		w.failures = append(w.failures, fmt.Sprintf(format, args...))
	}
	w.cancel()
}

// report fails the test with the recorded failures.
func (w *world) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failures {
		w.t.Error(f)
	}
	if len(w.failures) > 0 {
		w.t.FailNow()
	}
}

// expect sets the expected result of a turn.
func (w *world) expect(conversation, turn string, a *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expected[conversation] == nil {
		w.expected[conversation] = map[string]*answer{}
	}
	if old := w.expected[conversation][turn]; old != nil && old != a {
		w.failures = append(w.failures, fmt.Sprintf("%s: two commands were given the same turn %s", conversation, turn))
		w.cancel()
	}
	w.expected[conversation][turn] = a
}

// pause waits and returns false if the storm has ended.
func (w *world) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.ctx.Done():
		return false
	}
}

func (w *world) isCalm() bool {
	select {
	case <-w.calm:
		return true
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}

// trace records events with their times.
type trace struct {
	begin time.Time
	mu    sync.Mutex
	lines []string
}

// maxTrace limits the recorded lines. Only the newest ones are kept.
const maxTrace = 400

func (t *trace) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%8.3f ", time.Since(t.begin).Seconds())+fmt.Sprintf(format, args...))
	if len(t.lines) > 2*maxTrace {
		t.lines = append([]string(nil), t.lines[maxTrace:]...)
	}
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := ""
	for _, l := range t.lines {
		s += l + "\n"
	}
	return s
}
