package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// usage is a collection like that of the usage ledger.
var usage = data.Collection{Name: "usage", Prefix: "usage/", Of: data.BySubject}

func (h *harness) used(p gateway.Principal, n int) {
	h.t.Helper()
	var put []journal.KeyValue
	for i := range n {
		v, err := json.Marshal(map[string]any{"tenant": p.Tenant, "subject": p.Subject, "output": i})
		if err != nil {
			h.t.Fatal(err)
		}
		put = append(put, journal.KeyValue{Key: fmt.Sprintf("usage/%s/%04d", audit.Digest(p.Tenant, p.Subject), i), Value: v})
	}
	if err := h.Audit().PutKeys(h.t.Context(), put...); err != nil {
		h.t.Fatal(err)
	}
}

// marks are texts that occur only in data of alice.
var marks = []string{"alice-7731", "m4rk"}

// After a purge, no byte of any file contains data of the subject. The data of other users remain.
func TestPurgeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	j := onDisk(t, dir)
	h := newHarness(t, j)
	others := map[string]string{}
	for i := range 20 {
		h.talk(alice, "", fmt.Sprint("m4rk ", i))
		text := fmt.Sprint("kept ", i)
		others[h.talk(bob, "", text)] = text
	}
	twin := gateway.Principal{Tenant: "", Subject: alice.Subject} // of no tenant: another one
	// Alice writes as a guest in conversations of bob.
	ours := h.talk(bob, "", "ours")
	if _, err := h.Do(t.Context(), bob, ours, gateway.Command{Type: gateway.CommandShare, Subject: alice.Subject, Access: gateway.AccessWrite}); err != nil {
		t.Fatal(err)
	}
	h.ask(alice, ours, "m4rk as a guest")
	h.say(bob, ours, "kept too")
	namesake := h.talk(twin, "", "namesake")
	h.used(alice, 600)
	h.used(bob, 3)
	if _, err := h.Holds().Place(t.Context(), admin, gateway.Hold{Tenant: alice.Tenant, Subject: alice.Subject}); err != nil {
		t.Fatal(err)
	}
	p := data.NewPurger(h.Gateway, j, nil, nil, []data.Collection{usage}, quiet)
	var r *gateway.Rejection
	if _, err := p.Purge(t.Context(), admin, subject(alice), false); !errors.As(err, &r) || r.Reason != gateway.ReasonHeld {
		t.Errorf("purge under a legal hold: %v", err)
	}
	if err := h.Holds().Release(t.Context(), admin, gateway.Hold{Tenant: alice.Tenant, Subject: alice.Subject}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []gateway.Principal{alice, bob} {
		if _, err := p.Purge(t.Context(), who, subject(alice), false); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("purge by %s: %v", who.Subject, err)
		}
	}
	if _, err := p.Purge(t.Context(), admin, data.Subject{Tenant: "acme"}, false); !errors.As(err, &r) {
		t.Errorf("purge without a subject: %v", err)
	}
	var mine string
	for _, line := range h.export(alice, subject(alice)) {
		if strings.HasPrefix(line, `{"type":"message"`) {
			mine += line
		}
	}
	if !strings.Contains(mine, "m4rk as a guest") || strings.Contains(mine, "kept too") {
		t.Errorf("alice's messages in conversations of bob: %s", mine)
	}
	forecast := fmt.Sprint(p.Purge(t.Context(), admin, subject(alice), true))
	if want := "{true 20 1 1 map[usage:621] 45} <nil>"; forecast != want {
		t.Errorf("dry run: %s, want %s", forecast, want)
	}
	// The user with the same name in another tenant is purged first, so that any later trace of the name is alice's.
	if _, err := p.Purge(t.Context(), admin, subject(twin), false); err != nil {
		t.Fatal(err)
	}
	if n := len(h.lists(alice)); n != 21 {
		t.Errorf("after the purge of the namesake, alice has %d conversations, want 21", n)
	}
	if _, err := h.Conversation(t.Context(), admin, gateway.ActionRead, namesake); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("conversation of the namesake: %v", err)
	}
	// Of the 45 audit entries and that of an unshare, 6 are left to blank: the deletes of the conversations blanked the others.
	report := fmt.Sprint(p.Purge(t.Context(), admin, subject(alice), false))
	if want := "{false 20 1 1 map[usage:621] 6} <nil>"; report != want {
		t.Errorf("purge: %s, want %s", report, want)
	}
	second := fmt.Sprint(p.Purge(t.Context(), admin, subject(alice), false))
	if want := "{false 0 0 0 map[] 0} <nil>"; second != want {
		t.Errorf("second purge: %s, want %s", second, want)
	}
	for _, mark := range marks {
		if found := grep(t, dir, mark); found != "" {
			t.Errorf("%q is still in %s", mark, found)
		}
	}
	for id, text := range others {
		if fold := h.fold(id); !strings.Contains(fold, "you said "+text) {
			t.Errorf("conversation %s of bob has lost its text", id)
		}
	}
	if fold := h.fold(ours); !strings.Contains(fold, "kept too") || !strings.Contains(fold, `"name": "deleted"`) {
		t.Errorf("conversation of bob in which alice wrote:\n%s", fold)
	}
	if _, err := h.Conversation(t.Context(), alice, gateway.ActionRead, ours); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("alice reads a shared conversation: %v", err)
	}
	keys, err := j.Keys(t.Context(), "usage/")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range keys {
		if !usage.Of(kv, bob.Tenant, bob.Subject) {
			t.Errorf("remaining usage row: %s", kv.Value)
		}
	}
	if len(keys) != 25 {
		t.Errorf("%d usage rows of bob remain", len(keys))
	}
	_, err = h.Audit().Read(t.Context(), audit.Query{}, func(e audit.Entry) error {
		if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), alice.Subject) {
			t.Errorf("the audit log names alice: %s, %v", b, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	h.close()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mark := range marks {
		if found := grep(t, dir, mark); found != "" {
			t.Errorf("after the shutdown %q is still in %s", mark, found)
		}
	}
}

// dying is a journal that stops working after so many writes, as if the process had been killed.
type dying struct {
	journal.Journal
	left  atomic.Int32
	armed atomic.Bool // until then it lives
}

var errKilled = errors.New("killed")

func (d *dying) write() error {
	if d.armed.Load() && d.left.Add(-1) <= 0 {
		return errKilled
	}
	return nil
}

func (d *dying) Append(ctx context.Context, b journal.Batch) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Journal.Append(ctx, b)
}

func (d *dying) Delete(ctx context.Context, id string) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Journal.Delete(ctx, id)
}

// A purge that is interrupted at any of its writes is completed by the next start.
func TestPurgeResumes(t *testing.T) {
	for cut := 1; ; cut++ {
		dir := t.TempDir()
		j := onDisk(t, dir)
		h := newHarness(t, j)
		h.talk(alice, "", "m4rk 1")
		h.talk(alice, "", "m4rk 2")
		h.used(alice, 2)
		h.close()

		d := &dying{Journal: j}
		d.left.Store(int32(cut))
		killed := newHarness(t, d)
		d.armed.Store(true)
		_, err := data.NewPurger(killed.Gateway, killed.journal, nil, nil, []data.Collection{usage}, quiet).Purge(t.Context(), admin, subject(alice), false)
		killed.close()
		if err == nil {
			if cut < 6 {
				t.Errorf("a purge has only %d writes", cut)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		h = newHarness(t, j)
		begun, err := j.Keys(t.Context(), "purging/")
		if err != nil {
			t.Fatal(err)
		}
		if err := data.NewPurger(h.Gateway, j, nil, nil, []data.Collection{usage}, quiet).Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(begun) > 0 {
			for _, mark := range marks {
				if found := grep(t, dir, mark); found != "" {
					t.Errorf("interrupted at write %d: %q is still in %s", cut, mark, found)
				}
			}
		}
		if left, err := j.Keys(t.Context(), "purging/"); err != nil || len(left) > 0 {
			t.Errorf("interrupted at write %d: the purge is still marked as unfinished: %v, %v", cut, left, err)
		}
		h.close()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A purge whose client disconnects is completed by Run.
func TestPurgeWithoutCaller(t *testing.T) {
	h := newHarness(t, nil)
	defer h.close()
	h.talk(alice, "", "m4rk")
	ctx, cancel := context.WithCancel(t.Context())
	away := usage
	away.Of = func(kv journal.KeyValue, tenant, subject string) bool {
		cancel()
		return data.BySubject(kv, tenant, subject)
	}
	p := data.NewPurger(h.Gateway, h.journal, nil, nil, []data.Collection{away}, quiet)
	if _, err := p.Purge(ctx, admin, subject(alice), false); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted purge: %v", err)
	}
	running, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(running) }()
	for over := false; !over; {
		changed := h.Audit().Changed()
		if _, err := h.Audit().Read(t.Context(), audit.Query{}, func(e audit.Entry) error {
			over = over || e.Action == "purge" && e.Result == audit.Done
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !over {
			<-changed
		}
	}
	stop()
	<-done
	if keys, err := h.journal.Keys(t.Context(), "usage/"); err != nil || len(keys) > 0 {
		t.Errorf("remaining usage rows: %v, %v", keys, err)
	}
}
