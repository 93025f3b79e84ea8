package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	admin = gateway.Principal{Admin: true}
	alice = gateway.Principal{Tenant: "t", Subject: "alice", Scopes: []string{gateway.ScopeWrite}}
	bob   = gateway.Principal{Tenant: "t", Subject: "bob", Scopes: []string{gateway.ScopeWrite}}
)

// opened is a store over a gateway, which is closed at the end of the test.
type opened struct {
	t *testing.T
	*Store
	close func()
}

func open(t *testing.T, j journal.Journal, limits quota.Limits) *opened {
	t.Helper()
	gw, err := gateway.New(gateway.Config{Journal: j, Quotas: gateway.Quotas{User: limits}, Settings: gateway.Settings{Drain: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &opened{t: t, Store: New(gw, j, slog.New(slog.DiscardHandler))}
	o.close = sync.OnceFunc(func() {
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(o.close)
	return o
}

// run runs the store's own work until the function is called.
func (o *opened) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	o.t.Cleanup(stop)
	return stop
}

func (o *opened) put(p gateway.Principal, path string, c Creation) About {
	o.t.Helper()
	if c.ContentType == "" && c.Fork == "" {
		c.ContentType = "text/plain"
	}
	about, _, err := o.Create(o.t.Context(), p, path, c)
	if err != nil {
		o.t.Fatalf("create %s: %v", path, err)
	}
	return about
}

func (o *opened) post(p gateway.Principal, path, body string) Added {
	o.t.Helper()
	added, err := o.Append(o.t.Context(), p, path, Addition{ContentType: "text/plain", Body: []byte(body)})
	if err != nil {
		o.t.Fatalf("append to %s: %v", path, err)
	}
	return added
}

// text returns everything that a reader gets after a position, in pieces of about limit bytes.
func (o *opened) text(p gateway.Principal, path string, after int64, limit int) string {
	o.t.Helper()
	r, err := o.Open(o.t.Context(), p, path, true)
	if err != nil {
		o.t.Fatalf("open %s: %v", path, err)
	}
	defer r.Close()
	var b strings.Builder
	for {
		list, about, err := r.Read(o.t.Context(), after, limit)
		if err != nil {
			o.t.Fatalf("read %s: %v", path, err)
		}
		for _, a := range list {
			b.Write(a.Data)
			after = a.At
		}
		if after >= about.Tail {
			return b.String()
		}
		if len(list) == 0 {
			o.t.Fatalf("%s ends at %d, before %d", path, after, about.Tail)
		}
	}
}

func (o *opened) status(p gateway.Principal, path string) error {
	r, err := o.Open(o.t.Context(), p, path, false)
	if err == nil {
		r.Close()
	}
	return err
}

// A fork has the same data at the same positions as its source, whatever both get later, through several levels.
func TestForks(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "root", Creation{})
	for _, s := range []string{"a", "b", "c", "d"} {
		o.post(alice, "root", s)
	}
	tag := o.put(alice, "root", Creation{}).Tag
	if about := o.put(alice, "child", Creation{Fork: "root", ForkAt: 2, ForkTag: tag, HasForkAt: true}); about.Tail != 2 || about.Tag != tag {
		t.Errorf("%+v", about)
	}
	o.post(alice, "child", "X")
	o.put(alice, "grandchild", Creation{Fork: "child", Body: []byte("Y")})
	o.put(alice, "early", Creation{Fork: "child", ForkAt: 1, ForkTag: tag, HasForkAt: true, Body: []byte("Z")})
	o.put(alice, "part", Creation{Fork: "grandchild", ForkAt: 3, ForkTag: tag, HasForkAt: true, ForkSub: 1})
	o.post(alice, "root", "e")
	o.post(alice, "child", "W")
	for path, want := range map[string]string{"root": "abcde", "child": "abXW", "grandchild": "abXY", "early": "aZ", "part": "abXY"} {
		for _, limit := range []int{1, 3, 1 << 20} {
			if got := o.text(alice, path, 0, limit); got != want {
				t.Errorf("%s in pieces of %d: %q, want %q", path, limit, got, want)
			}
		}
		for after := range want {
			if got := o.text(alice, path, int64(after), 1); got != want[after:] {
				t.Errorf("%s after %d: %q, want %q", path, after, got, want[after:])
			}
		}
	}
	for name, c := range map[string]Creation{
		"beyond the end":    {Fork: "root", ForkAt: 6, ForkTag: tag, HasForkAt: true},
		"another stream's":  {Fork: "root", ForkAt: 1, ForkTag: "0", HasForkAt: true},
		"beyond the append": {Fork: "root", ForkAt: 1, ForkTag: tag, HasForkAt: true, ForkSub: 2},
		"after the end":     {Fork: "root", ForkSub: 1},
	} {
		if _, _, err := o.Create(t.Context(), alice, "bad", c); !isRejected(err, gateway.ReasonInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := o.Create(t.Context(), alice, "bad", Creation{Fork: "none"}); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("without a source: %v", err)
	}
}

// A deleted stream with forks is gone for clients, and its data stays as long as a fork needs it.
func TestDelete(t *testing.T) {
	j := memory.New()
	o := open(t, j, quota.Limits{})
	o.put(alice, "root", Creation{Body: []byte("a")})
	o.put(alice, "child", Creation{Fork: "root", Body: []byte("b")})
	o.put(alice, "grandchild", Creation{Fork: "child", Body: []byte("c")})
	for _, path := range []string{"root", "child"} {
		if err := o.Delete(t.Context(), alice, path); err != nil {
			t.Fatal(err)
		}
		if err := o.status(alice, path); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", path, err)
		}
		if err := o.Delete(t.Context(), alice, path); !errors.Is(err, ErrGone) {
			t.Errorf("%s again: %v", path, err)
		}
		if _, _, err := o.Create(t.Context(), alice, path, Creation{ContentType: "text/plain"}); !isRejected(err, gateway.ReasonConflict) {
			t.Errorf("%s is created: %v", path, err)
		}
	}
	if got := o.text(alice, "grandchild", 0, 1); got != "abc" {
		t.Errorf("%q", got)
	}
	if err := o.Delete(t.Context(), alice, "grandchild"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"root", "child", "grandchild"} {
		if err := o.status(alice, path); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, prefix := range []string{Prefix, forkKeys, producerKeys} {
		if keys, err := j.Keys(t.Context(), prefix); err != nil || len(keys) > 0 {
			t.Errorf("%s: %d keys are left, %v", prefix, len(keys), err)
		}
	}
	if about := o.put(alice, "root", Creation{}); about.Tail != 0 {
		t.Errorf("a new stream begins at %d", about.Tail)
	}
	if err := o.Audit(t, "stream.create", "stream.delete"); err != nil {
		t.Error(err)
	}
}

// Audit returns an error if the audit log lacks an action.
func (o *opened) Audit(t *testing.T, actions ...string) error {
	t.Helper()
	log := o.gw.Audit()
	if err := log.Flush(t.Context()); err != nil {
		return err
	}
	seen := map[string]bool{}
	if _, err := log.Read(t.Context(), audit.Query{Tenant: "t", Subject: "alice"}, func(e audit.Entry) error { seen[e.Action] = true; return nil }); err != nil {
		return err
	}
	for _, a := range actions {
		if !seen[a] {
			return fmt.Errorf("%s is not in the audit log", a)
		}
	}
	return nil
}

// Each user has separate streams, and all of them are erased with the user.
func TestErase(t *testing.T) {
	j := memory.New()
	o := open(t, j, quota.Limits{})
	for _, p := range []gateway.Principal{alice, bob, admin} {
		o.put(p, "same", Creation{Body: []byte("of " + p.Subject)})
		o.put(p, "fork", Creation{Fork: "same"})
		if err := o.Delete(t.Context(), p, "same"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Subscribe(t.Context(), p, "all", Plan{Type: typePull, Pattern: "**", Wake: "wake"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := o.Erase(t.Context(), "t", "alice"); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := o.Erase(t.Context(), "t", "alice"); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	if err := o.status(alice, "fork"); !errors.Is(err, gateway.ErrNotFound) {
		t.Error(err)
	}
	if got := o.text(bob, "fork", 0, 1); got != "of bob" {
		t.Errorf("%q", got)
	}
	keys, err := j.Keys(t.Context(), "stream/")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range keys {
		if strings.Contains(string(kv.Value), "alice") {
			t.Errorf("%s is left", kv.Key)
		}
	}
	logs, err := j.Conversations(t.Context(), journal.Query{System: true, Tenant: "t", Owner: "alice"})
	if err != nil || len(logs) > 0 {
		t.Errorf("%d logs are left, %v", len(logs), err)
	}
	if logs, err := j.Conversations(t.Context(), journal.Query{}); err != nil || len(logs) > 0 {
		t.Errorf("streams are listed as conversations: %+v, %v", logs, err)
	}
}
