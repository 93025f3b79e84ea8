package data_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/service/audit"
)

// day is shorter than a real one, because the gateway's timers run every second of the simulated time.
const day = 3 * time.Hour

func wantList(t *testing.T, h *harness, want ...string) {
	t.Helper()
	got := h.lists(admin)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("conversations %q, want %q", got, want)
	}
}

// Run deletes each conversation when it reaches the age of its agent.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		defer h.close()
		ages := data.Ages{Agents: map[string]time.Duration{"a": 2 * day, "b": 5 * day, "gone": day}, Audit: 20 * day}
		r := data.NewRetention(h.Gateway, h.journal, ages, "a", quiet)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		defer func() { cancel(); <-done }()

		x, y, used, held := h.talk(alice, "", "x"), h.talk(alice, "b", "y"), h.talk(alice, "a", "used"), h.talk(alice, "a", "held")
		if _, err := h.Holds().Place(t.Context(), admin, gateway.Hold{Conversation: held}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(day)
		wantList(t, h, x, y, used, held)
		h.say(alice, used, "again")
		time.Sleep(day + 30*time.Second)
		dry, err := r.Sweep(t.Context(), true)
		if err != nil || dry.Deleted != 1 || dry.OnHold != 1 || len(dry.Conversations) != 1 || dry.Conversations[0] != x {
			t.Errorf("dry run: %+v, %v", dry, err)
		}
		wantList(t, h, x, y, used, held)
		time.Sleep(2 * time.Hour)
		wantList(t, h, y, used, held)
		time.Sleep(day)
		wantList(t, h, y, held)
		time.Sleep(3 * day)
		wantList(t, h, held)
		// While there is a legal hold, the audit log is not trimmed.
		time.Sleep(20 * day)
		n, err := h.Audit().Count(t.Context(), audit.Query{})
		if err != nil || n < 12 {
			t.Errorf("%d remaining entries, %v", n, err)
		}
		if err := h.Holds().Release(t.Context(), admin, gateway.Hold{Conversation: held}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		wantList(t, h)
		var left []string
		if _, err := h.Audit().Read(t.Context(), audit.Query{}, func(e audit.Entry) error {
			left = append(left, e.Action+" "+e.Actor.Gateway)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if want := []string{"release ", "expire retention"}; !slices.Equal(left, want) {
			t.Errorf("the audit log contains %q, want %q", left, want)
		}
	})
}

// Without ages nothing is deleted, and the next sweep continues an interrupted one.
func TestRetentionWithoutAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		defer h.close()
		for i := range 5 {
			h.talk(alice, "b", fmt.Sprint("kept", i))
			h.talk(alice, "a", fmt.Sprint("goes", i))
		}
		time.Sleep(10 * day)
		none := data.NewRetention(h.Gateway, h.journal, data.Ages{}, "a", quiet)
		if s, err := none.Sweep(t.Context(), false); err != nil || s.Deleted+s.Audit != 0 {
			t.Errorf("without ages: %+v, %v", s, err)
		}
		r := none
		r.SetAges(data.Ages{Default: day, Agents: map[string]time.Duration{"b": 0}}) // from the next sweep on
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Sweep(ctx, false); err == nil {
			t.Error("a sweep with a cancelled context succeeded")
		}
		if s, err := r.Sweep(t.Context(), false); err != nil || s.Deleted != 5 {
			t.Errorf("%+v, %v", s, err)
		}
		if n := len(h.lists(admin)); n != 5 {
			t.Errorf("%d conversations remain", n)
		}
	})
}
