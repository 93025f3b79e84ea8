package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

var quiet = slog.New(slog.DiscardHandler)

// flaky is a journal whose commits to the audit log fail, either before or after they are stored.
type flaky struct {
	journal.Journal
	before, after bool
}

func (f *flaky) Append(ctx context.Context, b journal.Batch) error {
	if b.Conversation != audit.Conversation || b.Create {
		return f.Journal.Append(ctx, b)
	}
	if f.before {
		f.before = false
		return journal.ErrFull
	}
	err := f.Journal.Append(ctx, b)
	if f.after {
		f.after = false
		return journal.ErrUnknown
	}
	return err
}

// commit stores an entry in a commit of a conversation, as a command does.
func commit(t *testing.T, l *audit.Log, j journal.Journal, e audit.Entry) {
	t.Helper()
	kv, err := l.Note(e)
	if err != nil {
		t.Fatal(err)
	}
	b := journal.Batch{Conversation: "c", Keys: []journal.KeyValue{kv}}
	if _, err := j.Conversation(t.Context(), "c"); err != nil {
		b.Create, b.Summary = true, &journal.Summary{}
	}
	if err := j.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func actions(t *testing.T, l *audit.Log, q audit.Query) (out []string) {
	t.Helper()
	if _, err := l.Read(t.Context(), q, func(e audit.Entry) error {
		out = append(out, fmt.Sprint(e.Seq, " ", e.Action))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
}

// TestOnce makes the move of entries fail before and after its commit, with and without a restart in between. Each entry must
// be in the log once.
func TestOnce(t *testing.T) {
	j := &flaky{Journal: memory.New()}
	l := audit.New(j, quiet)
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, fail := range []struct{ before, after, restart bool }{{}, {before: true}, {after: true}, {before: true, restart: true}, {after: true, restart: true}} {
		commit(t, l, j, audit.Entry{Action: fmt.Sprint("a", i)})
		j.before, j.after = fail.before, fail.after
		if err := l.Flush(t.Context()); (err != nil) != (fail.before || fail.after) {
			t.Fatalf("%+v: %v", fail, err)
		}
		if fail.restart {
			l = audit.New(j, quiet)
			if err := l.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Record(t.Context(), audit.Entry{Action: "direct"}); err != nil {
		t.Fatal(err)
	}
	want(t, actions(t, l, audit.Query{}), "1 a0", "2 a1", "3 a2", "4 a3", "5 a4", "6 direct")
	if left, err := j.Keys(t.Context(), "audit/"); err != nil || len(left) > 0 {
		t.Errorf("keys are left: %v, %v", left, err)
	}
}

// TestRun checks that Run moves entries by itself, also after a failure.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &flaky{Journal: memory.New()}
		l := audit.New(j, quiet)
		if err := l.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		j.before = true
		grown := l.Changed()
		commit(t, l, j, audit.Entry{Action: "a"})
		l.Wake()
		<-grown
		want(t, actions(t, l, audit.Query{}), "1 a")
		cancel()
		<-done
	})
}

func TestReadTrimBlank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		l := audit.New(j, quiet)
		if err := l.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for _, e := range []audit.Entry{
			{Action: "send", Actor: audit.Actor{Tenant: "t", Subject: "alice"}, Conversation: "c"},
			{Action: "send", Actor: audit.Actor{Tenant: "t2", Subject: "alice"}, Conversation: "c2"},
			{Action: "export", Actor: audit.Actor{Admin: true}, Tenant: "t", Subject: "alice"},
			{Action: "send", Actor: audit.Actor{Tenant: "t", Subject: "bob"}, Conversation: "c"},
		} {
			if err := l.Record(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		want(t, actions(t, l, audit.Query{After: 2}), "3 export", "4 send")
		want(t, actions(t, l, audit.Query{Since: begin.Add(2 * time.Hour).UnixMilli()}), "3 export", "4 send")
		want(t, actions(t, l, audit.Query{Conversation: "c"}), "1 send", "4 send")
		want(t, actions(t, l, audit.Query{Tenant: "t", Subject: "alice"}), "1 send", "3 export")
		for _, n := range []int{2, 0} {
			if got, err := l.Blank(t.Context(), "t", "alice"); got != n || err != nil {
				t.Errorf("blanked %d, %v; want %d", got, err, n)
			}
		}
		want(t, actions(t, l, audit.Query{Tenant: "t", Subject: "alice"}))
		want(t, actions(t, l, audit.Query{}), "1 send", "2 send", "3 export", "4 send")
		for _, n := range []int{2, 0} {
			if got, err := l.Trim(t.Context(), begin.Add(90*time.Minute)); got != n || err != nil {
				t.Errorf("trimmed %d, %v; want %d", got, err, n)
			}
		}
		want(t, actions(t, l, audit.Query{}), "3 export", "4 send")
		if err := l.Record(t.Context(), audit.Entry{Action: "late"}); err != nil {
			t.Fatal(err)
		}
		want(t, actions(t, l, audit.Query{After: 4}), "5 late")
	})
}
