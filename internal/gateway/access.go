package gateway

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Principal is who asks. The zero value is nobody and may do nothing.
type Principal struct {
	Tenant  string
	Subject string
	// Scopes bound what the subject may do; nil grants what an end user may, which is ScopeWrite. One that is empty and not
	// nil grants nothing.
	Scopes []string
	// Admin holds the API token (or there is none), or a token that says so. It may do everything.
	Admin bool
	// Acting says that the holder of the API token acts for Subject. It decides nothing; the audit log tells it.
	Acting bool
	// Turn is the one turn that this principal may bring the stream of: an agent to which a turn was handed. It may do
	// nothing else, whatever the other fields say.
	Turn string
}

// Action is what a principal wants to do.
type Action string

// The actions. Those on a conversation are asked with its summary, the others with nil.
const (
	ActionList   Action = "list"
	ActionCreate Action = "create"
	ActionRead   Action = "read"
	ActionWrite  Action = "write"  // send, stop, steer, answer, truncate, rename
	ActionShare  Action = "share"  // let others read or write, and see who may
	ActionDelete Action = "delete" // the whole conversation
	ActionAgent  Action = "agent"  // speak as the agent: push, inject
	ActionAdmin  Action = "admin"  // operate the gateway
	// ActionInspect is to see what a turn exchanged with its agent: what the agent was told beside the messages too, so it takes
	// who may speak as the agent.
	ActionInspect Action = "inspect"
)

// The scopes, from the narrowest on; each includes those before it.
const (
	ScopeRead  = "read"  // list and read
	ScopeWrite = "write" // make conversations, write in them, share and delete what is one's own
	ScopeAgent = "agent" // speak as the agent in one's own conversations
)

// Scopes lists the scopes that a principal can have, from the narrowest on.
func Scopes() []string { return []string{ScopeRead, ScopeWrite, ScopeAgent} }

// grants are the actions that a scope adds to those of the scopes before it.
var grants = map[string][]Action{
	ScopeRead:  {ActionList, ActionRead},
	ScopeWrite: {ActionCreate, ActionWrite, ActionShare, ActionDelete},
	ScopeAgent: {ActionAgent, ActionInspect},
}

// Decide is the one place where access is decided, for every surface. A foreign conversation is ErrNotFound, so that
// nobody learns that it exists; one that may be seen but not changed is ErrForbidden.
func Decide(p Principal, a Action, c *journal.Summary) error {
	if p.Turn != "" {
		if c != nil {
			return ErrNotFound // its conversation too, of which it needs to know nothing
		}
		return ErrForbidden
	}
	if c != nil && strings.HasPrefix(c.ID, journal.SystemPrefix) {
		// The gateway's own logs are written by the gateway alone, and read by its operator.
		if !p.Admin {
			return ErrNotFound
		}
		if a != ActionRead {
			return ErrForbidden
		}
	}
	if p.Admin {
		return nil
	}
	if p.Subject == "" {
		return ErrForbidden
	}
	if c != nil && (c.Tenant != p.Tenant || c.Owner != p.Subject) {
		switch access := granted(c, p); {
		case access == "":
			return ErrNotFound
		case a != ActionRead && (a != ActionWrite || access != AccessWrite):
			return ErrForbidden
		}
	}
	if !p.may(a) {
		return ErrForbidden
	}
	return nil
}

// may reports whether the principal's scopes include an action.
func (p Principal) may(a Action) bool {
	has := p.Scopes
	if has == nil {
		has = []string{ScopeWrite}
	}
	scopes := Scopes()
	for i, s := range scopes {
		if slices.Contains(grants[s], a) {
			return slices.ContainsFunc(scopes[i:], func(wide string) bool { return slices.Contains(has, wide) })
		}
	}
	return false
}

// granted returns what of a conversation that is not the principal's own was shared with it: AccessWrite, AccessRead or
// nothing. Sharing ends at the tenant.
func granted(c *journal.Summary, p Principal) (access string) {
	if c.Tenant != p.Tenant {
		return ""
	}
	for _, g := range c.Grants {
		if (g.Subject == p.Subject || g.Subject == WholeTenant) && access != AccessWrite {
			access = g.Access
		}
	}
	return access
}

// DecideTurn is Decide for one turn of a conversation: its producer may bring the turn's stream in.
func DecideTurn(p Principal, a Action, turn string, c *journal.Summary) error {
	if p.Turn != "" && p.Turn == turn && a == ActionAgent {
		return nil
	}
	return Decide(p, a, c)
}

// What a conversation can be shared for.
const (
	AccessRead  = "read"
	AccessWrite = "write" // and read
)

// Everybody, as the subject of a grant, is every subject of the owner's tenant.
const WholeTenant = "*"
