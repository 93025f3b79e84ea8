package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// With an unknown result of a commit, a producer that repeats its appends has each of them in the stream once.
func TestUnknownCommits(t *testing.T) {
	j := &flaky{Journal: memory.New()}
	o := open(t, j, quota.Limits{})
	o.put(alice, "a", Creation{})
	j.chance = 0.3
	want := ""
	for i := range 200 {
		word := fmt.Sprintf("%d,", i)
		want += word
		a := Addition{ContentType: "text/plain", Body: []byte(word), Producer: &Producer{ID: "p", Seq: int64(i)}, Close: i == 199}
		for attempt := 0; ; attempt++ {
			added, err := o.Append(t.Context(), alice, "a", a)
			if errors.Is(err, gateway.ErrUnavailable) {
				continue
			}
			if err != nil || added.Outcome != Accepted && (added.Outcome != duplicate || attempt == 0) {
				t.Fatalf("append %d, attempt %d: %+v, %v", i, attempt, added, err)
			}
			break
		}
	}
	j.chance = 0
	if got := o.text(alice, "a", 0, 100); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if j.failures < 20 {
		t.Errorf("only %d commits have failed", j.failures)
	}
}

// flaky is a journal whose commits to streams fail, before or after they are stored.
type flaky struct {
	journal.Journal
	chance   float64
	failures int
}

func (f *flaky) Append(ctx context.Context, b journal.Batch) error {
	if journal.IsSystem(b.Conversation) || b.Create || rand.Float64() >= f.chance {
		return f.Journal.Append(ctx, b)
	}
	f.failures++
	if f.failures%2 == 0 {
		if err := f.Journal.Append(ctx, b); err != nil {
			return err
		}
	}
	return journal.ErrUnknown
}

// Everything is there after a restart, also what was compacted.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	start := func() (*opened, func()) {
		j, err := sqlite.Open(sqlite.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		o := open(t, j, quota.Limits{})
		stop := o.run()
		return o, func() {
			stop()
			o.close()
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	o, stop := start()
	o.put(alice, "a", Creation{})
	want := ""
	for i := range compactAfter + 10 {
		word := fmt.Sprintf("%d,", i)
		want += word
		if added, err := o.Append(t.Context(), alice, "a", Addition{
			ContentType: "text/plain", Body: []byte(word), Producer: &Producer{ID: "p", Epoch: 4, Seq: int64(i)}, Seq: fmt.Sprintf("%06d", i),
		}); err != nil || added.Outcome != Accepted {
			t.Fatal(added, err)
		}
	}
	o.put(alice, "fork", Creation{Fork: "a", Body: []byte("!")})
	o.put(alice, "closed", Creation{IsClosed: true, Body: []byte("all")})
	id := o.put(alice, "a", Creation{}).ID
	waitFor(t, func() bool {
		s, err := o.journal.Conversation(t.Context(), id)
		return err == nil && s.Compacted >= compactAfter
	})
	stop()

	o, stop = start()
	defer stop()
	if got := o.text(alice, "a", 0, 1000); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := o.text(alice, "fork", 0, 1<<20); got != want+"!" {
		t.Errorf("%q", got)
	}
	last := int64(compactAfter + 9)
	again := Addition{ContentType: "text/plain", Body: []byte("x"), Producer: &Producer{ID: "p", Epoch: 4, Seq: last}}
	if added, err := o.Append(t.Context(), alice, "a", again); err != nil || added.verdict != (verdict{duplicate, 4, last}) {
		t.Errorf("the producer is forgotten: %+v, %v", added, err)
	}
	if _, err := o.Append(t.Context(), alice, "a", Addition{ContentType: "text/plain", Body: []byte("x"), Seq: "000001"}); !isRejected(err, gateway.ReasonConflict) {
		t.Errorf("the last Stream-Seq is forgotten: %v", err)
	}
	if added := o.post(alice, "closed", "more"); added.Outcome != Closed || !added.IsClosed {
		t.Errorf("it isn't closed any more: %+v", added)
	}
}

// After a restore from a backup, offsets from after the backup are never those of other data.
func TestRestore(t *testing.T) {
	j, err := sqlite.Open(sqlite.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o := open(t, j, quota.Limits{})
	o.put(alice, "a", Creation{Body: []byte("a")})
	o.put(alice, "fork", Creation{Fork: "a", Body: []byte("f")})
	backup := filepath.Join(t.TempDir(), "backup")
	if err := j.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	lost := o.post(alice, "a", "lost")
	o.close()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sqlite.Restore(t.Context(), backup, dir); err != nil {
		t.Fatal(err)
	}
	j, err = sqlite.Open(sqlite.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o = open(t, j, quota.Limits{})
	defer func() {
		o.close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	if added := o.post(alice, "a", "b"); added.Tail <= lost.Tail {
		t.Errorf("position %d was used by what is lost, at %d", added.Tail, lost.Tail)
	}
	o.post(alice, "fork", "g")
	o.put(alice, "late", Creation{Fork: "a", Body: []byte("l")})
	for path, want := range map[string]string{"a": "ab", "fork": "afg", "late": "abl"} {
		for _, limit := range []int{1, 1 << 20} {
			if got := o.text(alice, path, 0, limit); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	if got := o.text(alice, "a", lost.Tail, 1); got != "b" {
		t.Errorf("a reader of what is lost gets %q", got)
	}
}

// More streams than are held in memory, of which some have deadlines that aren't stored yet.
func TestEviction(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "read", Creation{HasTTL: true, TTL: 1000})
	r, err := o.Open(t.Context(), alice, "read", true)
	if err != nil {
		t.Fatal(err)
	}
	r.state.mu.Lock()
	r.state.about.Deadline, r.state.promise = 1, 1
	r.state.mu.Unlock()
	r.Close()
	for i := range maxIdle + 10 {
		o.put(alice, fmt.Sprint("s", i), Creation{Body: fmt.Append(nil, i)})
	}
	o.mu.Lock()
	loaded := len(o.loaded)
	o.mu.Unlock()
	if loaded > maxIdle {
		t.Errorf("%d streams are in memory", loaded)
	}
	for i := range maxIdle + 10 {
		if got := o.text(alice, fmt.Sprint("s", i), 0, 1); got != fmt.Sprint(i) {
			t.Fatalf("stream %d: %q", i, got)
		}
	}
	if err := o.status(alice, "read"); err != nil {
		t.Errorf("its lifetime was forgotten: %v", err)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it didn't happen within a minute")
		}
	}
}

// Writers of one stream at the same time, and readers that follow it: each append is there once, and all see the same order.
func TestConcurrent(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "a", Creation{})
	const writers, each = 4, 50
	var tasks sync.WaitGroup
	texts := make([]string, 3)
	for i := range texts {
		tasks.Go(func() {
			r, err := o.Open(context.Background(), alice, "a", true)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			after := int64(0)
			for {
				changed := r.Changed()
				list, about, err := r.Read(context.Background(), after, 64)
				if err != nil {
					t.Error(err)
					return
				}
				for _, a := range list {
					texts[i] += string(a.Data)
					after = a.At
				}
				if after < about.Tail {
					continue
				}
				if about.IsClosed {
					return
				}
				<-changed
			}
		})
	}
	var appends sync.WaitGroup
	for w := range writers {
		appends.Go(func() {
			for i := range each {
				if _, err := o.Append(context.Background(), alice, "a", Addition{ContentType: "text/plain", Body: fmt.Appendf(nil, "%d.%d ", w, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	appends.Wait()
	if _, err := o.Append(t.Context(), alice, "a", Addition{Close: true}); err != nil {
		t.Fatal(err)
	}
	tasks.Wait()
	want := o.text(alice, "a", 0, 1<<20)
	for i, text := range texts {
		if text != want {
			t.Errorf("reader %d has another text", i)
		}
	}
	words := strings.Fields(want)
	next := map[string]int{}
	for _, word := range words {
		w, n, _ := strings.Cut(word, ".")
		if n != fmt.Sprint(next[w]) {
			t.Fatalf("writer %s: %s after %d", w, n, next[w]-1)
		}
		next[w]++
	}
	if len(words) != writers*each {
		t.Errorf("%d appends", len(words))
	}
}
