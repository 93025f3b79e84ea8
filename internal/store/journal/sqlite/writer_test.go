package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// start opens a journal that is closed at the end of the test.
func start(t testing.TB, opt Options) *Journal {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	opt.Logger = slog.New(slog.DiscardHandler)
	j, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

func create1(t testing.TB, j *Journal, id string) {
	t.Helper()
	if err := j.Append(t.Context(), journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{}}); err != nil {
		t.Fatal(err)
	}
}

// record returns a batch of one event.
func record(id string, expected int64) journal.Batch {
	return journal.Batch{Conversation: id, Expected: expected, Events: []event.Event{
		{Seq: expected + 1, At: 1, Type: event.Record, Body: &event.Body{RecordKind: "k"}},
	}}
}

func head(t testing.TB, j *Journal, id string) int64 {
	t.Helper()
	s, err := j.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Read(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.Head != s.Head || (len(r.Events) > 0 && r.Events[len(r.Events)-1].Seq > r.Head) {
		t.Fatalf("%s: the summary has head %d, the range %d", id, s.Head, r.Head)
	}
	return s.Head
}

// hold blocks the writer until the returned function is called.
func (j *Journal) hold(t testing.TB) (release func()) {
	t.Helper()
	held, done := make(chan struct{}), make(chan struct{})
	r := &request{result: make(chan error, 1), pause: func() error {
		close(held)
		<-done
		return nil
	}}
	if err := j.queue.push(r); err != nil {
		t.Fatal(err)
	}
	<-held
	return sync.OnceFunc(func() { close(done) })
}

// waitFor returns when n batches are queued.
func (j *Journal) waitFor(t testing.TB, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		j.queue.mu.Lock()
		got := len(j.queue.batches)
		j.queue.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d batches are queued, want %d", got, n)
		case <-time.After(time.Millisecond): // the callers are on their way
		}
	}
}

// TestGroupCommit checks that all queued batches share one commit, with one row for each conversation.
func TestGroupCommit(t *testing.T) {
	j := start(t, Options{})
	const n, each = 50, 3
	for i := range n {
		create1(t, j, fmt.Sprint("c", i))
	}
	release := j.hold(t)
	before := j.commits // the writer stands still
	var wg sync.WaitGroup
	for k := range each {
		for i := range n {
			wg.Go(func() {
				if err := j.Append(context.Background(), record(fmt.Sprint("c", i), int64(k))); err != nil {
					t.Error(err)
				}
			})
		}
		j.waitFor(t, n*(k+1)) // in order, as an owner that does not wait for its first batch
	}
	release()
	wg.Wait()
	defer j.hold(t)()
	if got := j.commits - before; got != 1 {
		t.Errorf("%d batches took %d commits", n*each, got)
	}
	if v, _ := j.index.view("c7", 0); len(v.chunks) != 1 || v.head != each {
		t.Errorf("c7 has %d rows, head %d", len(v.chunks), v.head)
	}
}

// TestCancelWhileWaiting withdraws a batch before the writer has taken it.
func TestCancelWhileWaiting(t *testing.T) {
	j := start(t, Options{})
	create1(t, j, "c")
	release := j.hold(t)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- j.Append(ctx, record("c", 0)) }()
	j.waitFor(t, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	release()
	if got := head(t, j, "c"); got != 0 {
		t.Errorf("head is %d", got)
	}
	if err := j.Append(t.Context(), record("c", 0)); err != nil {
		t.Errorf("the next append: %v", err)
	}
}

// TestCancelWhileCommitting waits for the result of a batch that the writer has taken.
func TestCancelWhileCommitting(t *testing.T) {
	reached, goOn := make(chan struct{}), make(chan struct{})
	armed := make(chan struct{})
	j := start(t, Options{Crash: func(point string) {
		select {
		case <-armed:
		default:
			return
		}
		if point == "before-commit" {
			reached <- struct{}{}
			<-goOn
		}
	}})
	create1(t, j, "c")
	close(armed)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- j.Append(ctx, record("c", 0)) }()
	<-reached
	cancel()
	select {
	case err := <-done:
		t.Errorf("append returned before its commit: %v", err)
	case <-time.After(20 * time.Millisecond): // it has every chance to return wrongly
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("append: %v", err)
	}
	if got := head(t, j, "c"); got != 1 {
		t.Errorf("head is %d", got)
	}
}

// TestUnknownCommit makes commits fail when they may already be stored. The journal must reopen the file and report what it
// contains.
func TestUnknownCommit(t *testing.T) {
	for _, c := range []struct {
		point string
		there int64
	}{{"commit", 0}, {"committed", 1}} {
		t.Run(c.point, func(t *testing.T) {
			j := start(t, Options{})
			create1(t, j, "c")
			create1(t, j, "d")
			if err := j.Append(t.Context(), record("d", 0)); err != nil {
				t.Fatal(err)
			}
			release := j.hold(t)
			failed := false
			j.faults = func(point string) error {
				if point != c.point || failed {
					return nil
				}
				failed = true
				return errors.New("I/O error")
			}
			release()
			if err := j.Append(t.Context(), record("c", 0)); !errors.Is(err, journal.ErrUnknown) {
				t.Fatalf("append: %v", err)
			}
			if !failed {
				t.Fatal("no commit failed")
			}
			if got := head(t, j, "c"); got != c.there {
				t.Errorf("head is %d, want %d", got, c.there)
			}
			for _, id := range []string{"c", "d"} {
				if err := j.Append(t.Context(), record(id, head(t, j, id))); err != nil {
					t.Errorf("%s continues: %v", id, err)
				}
			}
			if err := j.Healthy(); err != nil {
				t.Errorf("healthy: %v", err)
			}
		})
	}
}

// TestReopenWhileReading reopens the file under load. Readers wait, and none sees an older state than before.
func TestReopenWhileReading(t *testing.T) {
	j := start(t, Options{})
	create1(t, j, "c")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			last := int64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := j.Read(context.Background(), "c", 0, 0)
				if err != nil || r.Head < last || int64(len(r.Events)) != r.Head {
					t.Errorf("head %d after %d, %d events, %v", r.Head, last, len(r.Events), err)
					return
				}
				last = r.Head
			}
		})
	}
	release := j.hold(t)
	n := 0
	j.faults = func(point string) error {
		if point == "committed" {
			if n++; n%5 == 0 {
				return errors.New("I/O error")
			}
		}
		return nil
	}
	release()
	for range 25 {
		err := j.Append(t.Context(), record("c", head(t, j, "c")))
		if err != nil && !errors.Is(err, journal.ErrUnknown) {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	if got := head(t, j, "c"); got != 25 {
		t.Errorf("head is %d", got)
	}
}
