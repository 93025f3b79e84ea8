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

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
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

func TestLimits(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{Bytes: 4000})
	o.put(alice, "a", Creation{})
	_, err := o.Append(t.Context(), alice, "a", Addition{ContentType: "text/plain", Body: make([]byte, 5000)})
	if !isRejected(err, gateway.ReasonQuota) {
		t.Errorf("too many bytes: %v", err)
	}
	o.post(alice, "a", "x")
	o.put(admin, "a", Creation{Body: make([]byte, 5000)}) // the operator has no limits
	o = open(t, memory.New(), quota.Limits{Messages: 2})
	o.put(alice, "a", Creation{})
	o.post(alice, "a", "x")
	if _, err := o.Append(t.Context(), alice, "a", Addition{ContentType: "text/plain", Body: []byte("y")}); !isRejected(err, gateway.ReasonRateLimited) {
		t.Errorf("too many messages: %v", err)
	}
	if got := o.text(alice, "a", 0, 1); got != "x" {
		t.Errorf("%q", got)
	}
	reader := gateway.Principal{Tenant: "t", Subject: "alice", Scopes: []string{gateway.ScopeRead}}
	if _, err := o.Append(t.Context(), reader, "a", Addition{Close: true}); !errors.Is(err, gateway.ErrForbidden) {
		t.Errorf("with the scope read: %v", err)
	}
	if _, _, err := o.Create(t.Context(), gateway.Principal{Turn: "x"}, "a", Creation{}); !errors.Is(err, gateway.ErrForbidden) {
		t.Errorf("with a turn's token: %v", err)
	}
	for _, path := range []string{"", strings.Repeat("x", maxPath+1), "a\nb", "a\xffb"} {
		if _, _, err := o.Create(t.Context(), alice, path, Creation{}); !isRejected(err, gateway.ReasonInvalid) {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

// The limits of the store itself. Producers that have been silent for long make room for others.
func TestBounds(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "a", Creation{})
	produce := func(id string) error {
		added, err := o.Append(t.Context(), alice, "a", Addition{ContentType: "text/plain", Body: []byte("x"), Producer: &Producer{ID: id}})
		if err == nil && added.Outcome != Accepted {
			t.Errorf("%s: %+v", id, added)
		}
		return err
	}
	for i := range maxProducers {
		if err := produce(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := produce("one more"); !isRejected(err, gateway.ReasonFull) {
		t.Errorf("one more producer: %v", err)
	}
	st := o.use(keyOf(alice.Account(), "a"))
	old := st.producers["7"]
	old.At -= 2 * producerLife.Milliseconds()
	st.producers["7"] = old
	o.release(st)
	if err := produce("one more"); err != nil {
		t.Error(err)
	}
	if len(st.producers) != maxProducers || st.producers["7"].At != 0 {
		t.Errorf("%d producers, the old one %+v", len(st.producers), st.producers["7"])
	}

	path := "a"
	for i := range maxChain {
		next := fmt.Sprint("fork", i)
		o.put(alice, next, Creation{Fork: path, Body: []byte("y")})
		path = next
	}
	if _, _, err := o.Create(t.Context(), alice, "deeper", Creation{Fork: path}); !isRejected(err, gateway.ReasonFull) {
		t.Errorf("one more level: %v", err)
	}
	if got, want := o.text(alice, path, 0, 100), strings.Repeat("x", maxProducers+1)+strings.Repeat("y", maxChain); got != want {
		t.Errorf("the deepest fork has %d bytes, want %d", len(got), len(want))
	}

	o.addCount(alice.Account(), maxStreams, true)
	if _, _, err := o.Create(t.Context(), alice, "b", Creation{ContentType: "text/plain"}); !isRejected(err, gateway.ReasonFull) {
		t.Errorf("one more stream: %v", err)
	}
	if err := o.Delete(t.Context(), alice, path); err != nil {
		t.Fatal(err)
	}
	o.put(alice, "b", Creation{})
}

// A legal hold keeps streams, also those that have expired.
func TestHold(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "a", Creation{Body: []byte("evidence")})
	o.put(alice, "expired", Creation{HasTTL: true})
	hold, err := o.gw.Holds().Place(t.Context(), admin, gateway.Hold{Tenant: "t", Subject: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Delete(t.Context(), alice, "a"); !isHeld(err) {
		t.Error(err)
	}
	if err := o.status(alice, "expired"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if _, _, err := o.Create(t.Context(), alice, "expired", Creation{ContentType: "text/plain"}); !isRejected(err, gateway.ReasonConflict) {
		t.Errorf("another stream takes its place: %v", err)
	}
	var refused []string
	if _, err := o.gw.Audit().Read(t.Context(), audit.Query{Tenant: "t", Subject: "alice"}, func(e audit.Entry) error {
		if e.Result != audit.Done {
			refused = append(refused, e.Action+" "+e.Result)
		}
		return nil
	}); err != nil || len(refused) != 1 || refused[0] != "stream.delete held" {
		t.Errorf("refused: %v, %v", refused, err)
	}
	if err := o.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if got := o.text(alice, "a", 0, 1); got != "evidence" {
		t.Errorf("%q", got)
	}
	if err := o.gw.Holds().Release(t.Context(), admin, hold); err != nil {
		t.Fatal(err)
	}
	if err := o.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	keys, err := o.journal.KeysAfter(t.Context(), Prefix, "", 10)
	if err != nil || len(keys) != 1 {
		t.Errorf("%d streams are left, %v", len(keys), err)
	}
}

// An expired stream is gone at once, and a sweep removes its data. Readers of a stream with a sliding lifetime keep it.
func TestExpiry(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	o.put(alice, "source", Creation{HasTTL: true, TTL: 1000, Body: []byte("a")})
	about := o.put(alice, "fork", Creation{Fork: "source"})
	if !about.HasTTL || about.TTL != 1000 {
		t.Errorf("the fork has another lifetime: %+v", about)
	}
	o.put(alice, "past", Creation{ExpiresAt: "2001-02-03T04:05:06Z"})
	o.put(alice, "none", Creation{HasTTL: true})
	for _, path := range []string{"past", "none"} {
		if err := o.status(alice, path); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
	o.put(alice, "swept", Creation{HasTTL: true})
	if err := o.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := o.journal.KeysAfter(t.Context(), Prefix, "", 10)
	if err != nil || len(keys) != 2 {
		t.Errorf("%d streams are left, %v", len(keys), err)
	}
	if err := o.Audit(t, "stream.expire"); err != nil {
		t.Error(err)
	}

	r, err := o.Open(t.Context(), alice, "source", true)
	if err != nil {
		t.Fatal(err)
	}
	r.state.mu.Lock()
	r.state.promise = 1 // long ago
	r.state.mu.Unlock()
	if _, _, err := r.Read(t.Context(), 0, 1); err != nil {
		t.Errorf("a stream expires while it is read: %v", err)
	}
	r.Close()
	if err := o.status(alice, "source"); err != nil {
		t.Errorf("the lifetime doesn't begin again: %v", err)
	}
}

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
