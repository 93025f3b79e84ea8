package serve

import (
	"context"
	"log/slog"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// A purge deletes the read positions of its subject, also in conversations of other owners.
func TestPurgeOfPositions(t *testing.T) {
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	admin, alice, bob := gateway.Principal{Admin: true}, gateway.Principal{Tenant: "t", Subject: "alice"}, gateway.Principal{Tenant: "t", Subject: "bob"}
	s, _, err := gw.Create(t.Context(), alice, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []gateway.Command{
		{Type: gateway.CommandShare, Subject: gateway.WholeTenant, Access: gateway.AccessRead},
		{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}},
	} {
		if _, err := gw.Do(t.Context(), admin, s.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []gateway.Principal{alice, bob} {
		if _, err := gw.MarkRead(t.Context(), p, s.ID, 0); err != nil {
			t.Fatal(err)
		}
	}
	store := streams.New(gw, j, slog.New(slog.DiscardHandler))
	for _, p := range []gateway.Principal{alice, bob} {
		p.Scopes = []string{gateway.ScopeWrite}
		if _, _, err := store.Create(t.Context(), p, "notes", streams.Creation{ContentType: "text/plain", Body: []byte("of " + p.Subject)}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Subscribe(t.Context(), p, "all", streams.Plan{Type: "pull-wake", Pattern: "**", Wake: "wake"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	purger := data.NewPurger(gw, j, nil, store, collections(), slog.New(slog.DiscardHandler))
	for _, isDry := range []bool{true, false} {
		purged, err := purger.Purge(t.Context(), admin, data.Subject{Tenant: "t", Subject: "bob"}, isDry)
		if err != nil || purged.Keys["read"] != 1 || purged.Keys["streams"] != 1 || isDry && purged.Keys["subscriptions"] != 1 {
			t.Errorf("%+v, %v", purged, err)
		}
	}
	for _, prefix := range []string{streams.Prefix, streams.SubscriptionPrefix} {
		left, err := j.Keys(t.Context(), prefix)
		if err != nil || len(left) != 1 || !data.BySubject(left[0], "t", "alice") {
			t.Errorf("left below %s %+v, %v", prefix, left, err)
		}
	}
	left, err := j.Keys(t.Context(), gateway.PositionPrefix)
	if err != nil || len(left) != 1 || !gateway.PositionOf(left[0].Key, "t", "alice") {
		t.Errorf("left %+v, %v", left, err)
	}
}
