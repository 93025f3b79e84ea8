package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/store/journal"
)

var admin = gateway.Principal{Admin: true}

// reader lets each subject see the conversation of its name.
type reader struct{}

func (reader) Conversation(_ context.Context, p gateway.Principal, a gateway.Action, id string) (journal.Summary, error) {
	s := journal.Summary{ID: id, Owner: id}
	return s, gateway.Decide(p, a, &s)
}

// take reads all frames that are available, joined by spaces, and the number of skipped frames.
func take(t *testing.T, c *hub.Cursor, p gateway.Principal, client string) (frames string, missed int64) {
	t.Helper()
	var all []string
	for {
		b, m, err := c.Next(t.Context(), p, client)
		if err != nil {
			t.Fatal(err)
		}
		missed += m
		if b == nil {
			return strings.Join(all, " "), missed
		}
		all = append(all, string(b))
	}
}

func TestReceivers(t *testing.T) {
	h := hub.New(reader{})
	alice, bob := gateway.Principal{Subject: "alice"}, gateway.Principal{Subject: "bob"}
	for who, want := range map[*gateway.Principal]string{&admin: "of-alice admins all", &alice: "of-alice all alices", &bob: "all bobs-tab"} {
		c := h.Join()
		for _, f := range []hub.Frame{
			{Conversation: "alice", JSON: []byte("of-alice")},
			{JSON: []byte("admins")},
			{Broadcast: true, JSON: []byte("all")},
			{Private: true, Subject: "alice", JSON: []byte("alices")},
			{Private: true, Subject: "bob", Client: "tab", JSON: []byte("bobs-tab")},
			{Broadcast: true, Client: "other", JSON: []byte("other-tab")},
		} {
			h.Send(f)
		}
		if got, missed := take(t, c, *who, "tab"); got != want || missed != 0 {
			t.Errorf("%+v gets %q and skips %d, want %q", *who, got, missed, want)
		}
	}
}

// The frame of a deleted conversation reaches the users who could read it, although the gateway no longer finds it.
func TestDeletedConversation(t *testing.T) {
	h := hub.New(reader{})
	was := &journal.Summary{ID: "c", Tenant: "t", Owner: "alice", Grants: []journal.Grant{{Subject: "bob", Access: gateway.AccessRead}}}
	for who, want := range map[string]string{"alice": "gone", "bob": "gone", "carol": ""} {
		c := h.Join()
		h.Send(hub.Frame{Conversation: who, Key: "c", JSON: []byte("renamed")})
		h.Send(hub.Frame{Deleted: was, Key: "c", JSON: []byte("gone")})
		if got, _ := take(t, c, gateway.Principal{Tenant: "t", Subject: who}, ""); got != want {
			t.Errorf("%s gets %q, want %q", who, got, want)
		}
		if got, _ := take(t, c, gateway.Principal{Tenant: "other", Subject: who}, ""); got != "" {
			t.Errorf("%s of another tenant gets %q", who, got)
		}
	}
}

// A slow socket gets the newest frame of each key and the number of lost frames.
func TestSlowSocket(t *testing.T) {
	h := hub.New(reader{})
	c, changed := h.Join(), h.Changed()
	for i := range 3 {
		h.Send(hub.Frame{Key: "k", JSON: fmt.Append(nil, "k", i)})
		h.Send(hub.Frame{JSON: fmt.Append(nil, "f", i)})
	}
	<-changed
	if got, missed := take(t, c, admin, ""); got != "f0 f1 k2 f2" || missed != 0 {
		t.Errorf("got %q, missed %d", got, missed)
	}
	for i := range 3000 {
		h.Send(hub.Frame{Key: fmt.Sprint(i), JSON: []byte("x")})
	}
	if got, missed := take(t, c, admin, ""); missed != 3000-1024 || len(got) != 2*1024-1 {
		t.Errorf("%d bytes, missed %d", len(got), missed)
	}
	for range 10 {
		h.Send(hub.Frame{JSON: make([]byte, 1<<20)})
	}
	if _, missed := take(t, c, admin, ""); missed != 6 {
		t.Errorf("%d of ten frames of 1 MiB were skipped", missed)
	}
}
