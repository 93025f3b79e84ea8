package serve

import (
	"context"
	"log/slog"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
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
	purged, err := data.NewPurger(gw, j, nil, nil, collections(), slog.New(slog.DiscardHandler)).Purge(t.Context(), admin, data.Subject{Tenant: "t", Subject: "bob"}, false)
	if err != nil || purged.Keys["read"] != 1 {
		t.Errorf("%+v, %v", purged, err)
	}
	left, err := j.Keys(t.Context(), gateway.PositionPrefix)
	if err != nil || len(left) != 1 || !gateway.PositionOf(left[0].Key, "t", "alice") {
		t.Errorf("left %+v, %v", left, err)
	}
}
