package gateway_test

import (
	"errors"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

var actions = []gateway.Action{
	gateway.ActionList, gateway.ActionCreate, gateway.ActionRead, gateway.ActionWrite, gateway.ActionShare, gateway.ActionDelete,
	gateway.ActionAgent, gateway.ActionAdmin,
}

// answers returns what a principal may do with a conversation, one letter for each action in the order above: y for yes, f for
// forbidden, n for not found.
func answers(p gateway.Principal, c *journal.Summary) (all string) {
	for _, a := range actions {
		switch err := gateway.Decide(p, a, c); {
		case err == nil:
			all += "y"
		case errors.Is(err, gateway.ErrNotFound):
			all += "n"
		case errors.Is(err, gateway.ErrForbidden):
			all += "f"
		default:
			all += "?"
		}
	}
	return all
}

func TestDecide(t *testing.T) {
	as := func(tenant, subject string, scopes ...string) gateway.Principal {
		return gateway.Principal{Tenant: tenant, Subject: subject, Scopes: scopes}
	}
	nobody, none := gateway.Principal{}, gateway.Principal{Tenant: "t1", Subject: "alice", Scopes: []string{}}
	own := &journal.Summary{ID: "c", Tenant: "t1", Owner: "alice"}
	with := func(grants ...journal.Grant) *journal.Summary {
		return &journal.Summary{ID: "c", Tenant: "t1", Owner: "alice", Grants: grants}
	}
	read, write := gateway.AccessRead, gateway.AccessWrite
	for _, c := range []struct {
		name string
		p    gateway.Principal
		c    *journal.Summary
		// list create read write share delete agent admin
		want string
	}{
		{"admin", admin, nil, "yyyyyyyy"},
		{"admin", admin, own, "yyyyyyyy"},
		{"admin, a log of the gateway's own", admin, &journal.Summary{ID: "$audit"}, "ffyfffff"},
		{"nobody", nobody, nil, "ffffffff"},
		{"nobody", nobody, own, "ffffffff"},
		{"nobody, nobody's", nobody, &journal.Summary{ID: "c"}, "ffffffff"},
		{"user", as("t1", "alice"), nil, "yyyyyyff"},
		{"owner", as("t1", "alice"), own, "yyyyyyff"},
		{"owner, read", as("t1", "alice", "read"), own, "yfyfffff"},
		{"owner, write", as("t1", "alice", "write"), own, "yyyyyyff"},
		{"owner, agent", as("t1", "alice", "agent"), own, "yyyyyyyf"},
		{"owner, read and agent", as("t1", "alice", "read", "agent"), own, "yyyyyyyf"},
		{"owner, no scope", none, own, "ffffffff"},
		{"owner, unknown scope", as("t1", "alice", "admin", "x"), own, "ffffffff"},
		{"user, a log of the gateway's own", as("", "", "agent"), &journal.Summary{ID: "$audit"}, "nnnnnnnn"},
		{"same subject, other tenant", as("t2", "alice", "agent"), own, "nnnnnnnn"},
		{"same subject, no tenant", as("", "alice", "agent"), own, "nnnnnnnn"},
		{"other subject", as("t1", "bob", "agent"), own, "nnnnnnnn"},
		{"nobody's conversation", as("", "bob"), &journal.Summary{ID: "c"}, "nnnnnnnn"},
		{"reader", as("t1", "bob"), with(journal.Grant{Subject: "bob", Access: read}), "ffyfffff"},
		{"writer", as("t1", "bob", "agent"), with(journal.Grant{Subject: "bob", Access: write}), "ffyyffff"},
		{"writer, scope read", as("t1", "bob", "read"), with(journal.Grant{Subject: "bob", Access: write}), "ffyfffff"},
		{"a grant to another", as("t1", "bob"), with(journal.Grant{Subject: "carol", Access: write}), "nnnnnnnn"},
		{"a grant, other tenant", as("t2", "bob"), with(journal.Grant{Subject: "bob", Access: write}), "nnnnnnnn"},
		{"everybody", as("t1", "bob"), with(journal.Grant{Subject: "*", Access: read}), "ffyfffff"},
		{"everybody of a tenant", as("t2", "bob"), with(journal.Grant{Subject: "*", Access: read}), "nnnnnnnn"},
		{"everybody reads, one writes", as("t1", "bob"), with(journal.Grant{Subject: "*", Access: read}, journal.Grant{Subject: "bob", Access: write}), "ffyyffff"},
		{"everybody writes, one reads", as("t1", "bob"), with(journal.Grant{Subject: "*", Access: write}, journal.Grant{Subject: "bob", Access: read}), "ffyyffff"},
		{"a grant of nonsense", as("t1", "bob"), with(journal.Grant{Subject: "bob", Access: "own"}), "ffyfffff"},
		{"no subject, everybody", as("t1", ""), with(journal.Grant{Subject: "*", Access: write}), "ffffffff"},
		{"a turn's producer", gateway.Principal{Turn: "x", Admin: true}, own, "nnnnnnnn"},
	} {
		if got := answers(c.p, c.c); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
