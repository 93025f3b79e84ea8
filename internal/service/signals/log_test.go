package signals_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

func open(t *testing.T, j journal.Journal) *signals.Log {
	t.Helper()
	l := signals.New(j, slog.New(slog.DiscardHandler))
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func publish(t *testing.T, l *signals.Log, n int, conversation string) (last int64) {
	t.Helper()
	all := make([]signals.Signal, n)
	for i := range all {
		all[i] = signals.Signal{Type: signals.AgentEvent, Conversation: conversation, Payload: fmt.Append(nil, i)}
	}
	last, err := l.Publish(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// wantHeld checks the numbers of the signals after a given one.
func wantHeld(t *testing.T, l *signals.Log, after, first, last int64, gap bool) {
	t.Helper()
	all, g := l.After(after)
	if len(all) == 0 || all[0].N != first || all[len(all)-1].N != last || int64(len(all)) != last-first+1 || g != gap {
		t.Errorf("after %d: %d signals, gap %v; want %d to %d, gap %v", after, len(all), g, first, last, gap)
	}
}

// At most Cap signals are kept in memory, and slightly more in the journal. Numbers continue after a restart.
func TestCap(t *testing.T) {
	j := memory.New()
	defer func() { _ = j.Close() }()
	l := open(t, j)
	for range 20 {
		publish(t, l, 100, "")
	}
	wantHeld(t, l, 0, 501, 2000, true)
	wantHeld(t, l, 500, 501, 2000, false)
	wantHeld(t, l, 1999, 2000, 2000, false)
	r, err := j.Read(t.Context(), signals.Conversation, 0, 0)
	if err != nil || len(r.Events) > signals.Cap+200 {
		t.Errorf("the journal has %d records, %v", len(r.Events), err)
	}
	l = open(t, j)
	wantHeld(t, l, 499, 501, 2000, true)
	if last := publish(t, l, 1, ""); last != 2001 {
		t.Errorf("the next number is %d", last)
	}
}

// After a restore, no number is used again.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	j, err := sqlite.Open(sqlite.Options{Dir: filepath.Join(dir, "a")})
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, j)
	publish(t, l, 3, "")
	backup := filepath.Join(dir, "backup")
	if err := j.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	lost := publish(t, l, 50, "")
	if err := errors.Join(j.Close(), sqlite.Restore(t.Context(), backup, filepath.Join(dir, "b"))); err != nil {
		t.Fatal(err)
	}
	if j, err = sqlite.Open(sqlite.Options{Dir: filepath.Join(dir, "b")}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l = open(t, j)
	wantHeld(t, l, 0, 1, 3, false)
	if last := publish(t, l, 1, ""); last <= lost {
		t.Errorf("the first number after the restore is %d, but %d was used", last, lost)
	}
}

// Nothing is written about a deleted conversation, and existing records about it are blank.
func TestDeleted(t *testing.T) {
	j := memory.New()
	defer func() { _ = j.Close() }()
	l := open(t, j)
	for _, id := range []string{"a", "b"} {
		if err := j.Append(t.Context(), journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{ID: id}}); err != nil {
			t.Fatal(err)
		}
		publish(t, l, 1, id)
	}
	if err := j.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Publish(t.Context(), signals.Signal{Type: signals.AgentEvent, Conversation: "a"}); !errors.Is(err, signals.ErrGone) {
		t.Errorf("signal about a deleted conversation: %v", err)
	}
	l.Forget("a")
	wantHeld(t, l, 0, 2, 2, false)
	wantHeld(t, open(t, j), 0, 2, 2, false)

	// An offered signal that is refused doesn't prevent the others from being written.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Offer(signals.Signal{Type: signals.AgentEvent, Conversation: "a"})
	l.Offer(signals.Signal{Type: signals.AgentEvent, Conversation: "b"})
	l.Run(ctx)
	wantHeld(t, l, 0, 2, 3, false)
}
