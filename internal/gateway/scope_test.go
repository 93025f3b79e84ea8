package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// TestIDsOfTenants creates each id for users of several tenants, in all orders. The response to one tenant must not depend on the ids of
// another.
func TestIDsOfTenants(t *testing.T) {
	people := []gateway.Principal{
		{Subject: "alice"}, {Tenant: "t1", Subject: "alice"}, {Tenant: "t2", Subject: "alice"}, {Tenant: "t2", Subject: "bob"},
	}
	h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
	t.Cleanup(h.close)
	theirs, err := gateway.ConversationID("t1", "notes") // the complete id of the tenant's conversation
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := h.Create(t.Context(), people[1], gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]map[string]bool{} // by tenant
	for _, name := range []string{"notes", theirs, made.ID} {
		for _, p := range people {
			s, _, err := h.Create(t.Context(), p, gateway.CreateOptions{ID: name})
			own := ids[p.Tenant]
			if own == nil {
				own = map[string]bool{}
				ids[p.Tenant] = own
			}
			want, werr := gateway.ConversationID(p.Tenant, name)
			switch {
			case werr != nil:
				if err == nil || err.Error() != werr.Error() {
					t.Errorf("%v creates %q: %v, want %v", p, name, err, werr)
				}
			case own[want] || p.Tenant == made.Tenant && want == made.ID:
				if !errors.Is(err, gateway.ErrExists) {
					t.Errorf("%v creates %q, which the tenant has: %v", p, name, err)
				}
			case err != nil || s.ID != want:
				t.Errorf("%v creates %q: %q %v, want %q", p, name, s.ID, err, want)
			}
			own[want] = true
		}
	}
}

// The ids of deleted and imported conversations have the tenant's ending too.
func TestIDsOfTenantsStayApart(t *testing.T) {
	h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
	t.Cleanup(h.close)
	alice, mallory := gateway.Principal{Tenant: "t1", Subject: "alice"}, gateway.Principal{Subject: "mallory"}
	s, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{ID: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Do(t.Context(), alice, s.ID, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if added, err := h.Import(t.Context(), admin, gateway.Imported{Summary: journal.Summary{ID: "moved", Tenant: "t1", Owner: "alice"}, Digest: "d"}); !added || err != nil {
		t.Fatal(added, err)
	}
	if added, err := h.Import(t.Context(), admin, gateway.Imported{Summary: journal.Summary{ID: "moved", Tenant: "t1", Owner: "alice"}, Digest: "d"}); added || err != nil {
		t.Errorf("the same import again: %v %v", added, err)
	}
	for _, name := range []string{"gone", "moved"} {
		if s, _, err := h.Create(t.Context(), mallory, gateway.CreateOptions{ID: name}); err != nil || s.ID != name {
			t.Errorf("creating %q: %q %v", name, s.ID, err)
		}
		if _, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{ID: name}); !errors.Is(err, gateway.ErrExists) {
			t.Errorf("creating %q in its tenant: %v", name, err)
		}
	}
}

func TestConversationIDLength(t *testing.T) {
	for tenant, most := range map[string]int{"": 128, "acme": 111} {
		if _, err := gateway.ConversationID(tenant, strings.Repeat("a", most)); err != nil {
			t.Errorf("tenant %q: %v", tenant, err)
		}
		if _, err := gateway.ConversationID(tenant, strings.Repeat("a", most+1)); err == nil {
			t.Errorf("tenant %q takes %d bytes", tenant, most+1)
		}
	}
}
