package streams

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// What a user stores in streams counts for the quota.
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
