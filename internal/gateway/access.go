package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Principal is the user or program behind a request. The zero value may do nothing.
type Principal struct {
	Tenant  string
	Subject string
	// Scopes limit what the subject may do. If Scopes is nil, the subject has the rights of an end user, which are those of ScopeWrite.
	// If it is empty but not nil, the subject may do nothing.
	Scopes []string
	// Admin is true for the API token, for every request if no token is configured, and for user tokens with the admin right. An admin
	// may do everything.
	Admin bool
	// Acting is true if the holder of the API token acts for Subject. It has no influence on access; the audit log records it.
	Acting bool
	// Turn is set for the producer to which an agent left one turn. It may push the stream of that turn and do nothing else,
	// whatever the other fields are.
	Turn string
}

// Action is something that a principal wants to do. Decide knows which scope each action needs.
type Action string

// The actions. Decide needs the conversation's summary for actions on a conversation, and nil for the others.
const (
	ActionList   Action = "list"
	ActionCreate Action = "create"
	ActionRead   Action = "read"
	ActionWrite  Action = "write"  // send, stop, steer, answer, truncate, rename
	ActionShare  Action = "share"  // grant and revoke access, and list the grants
	ActionDelete Action = "delete" // the whole conversation
	ActionAgent  Action = "agent"  // speak as the agent: push, inject
	ActionAdmin  Action = "admin"  // operate the gateway
	// ActionInspect shows the bytes that a turn exchanged with its agent. They include instructions that users don't see, so it needs
	// the same scope as ActionAgent.
	ActionInspect Action = "inspect"
)

// The scopes, from the narrowest to the widest. Each includes those before it.
const (
	ScopeRead  = "read"  // list and read
	ScopeWrite = "write" // make conversations, write in them, share and delete what is one's own
	ScopeAgent = "agent" // speak as the agent in one's own conversations
)

// Scopes lists the scopes that a principal can have, from the narrowest to the widest.
func Scopes() []string { return []string{ScopeRead, ScopeWrite, ScopeAgent} }

// grants lists the actions that each scope adds to those of the narrower scopes.
var grants = map[string][]Action{
	ScopeRead:  {ActionList, ActionRead},
	ScopeWrite: {ActionCreate, ActionWrite, ActionShare, ActionDelete},
	ScopeAgent: {ActionAgent, ActionInspect},
}

// Decide decides about access, for every surface: whether a principal may do an action with a conversation, or, if c is nil, an
// action that concerns no conversation. If the principal may not read the conversation, the error is ErrNotFound, so that it
// doesn't learn that the conversation exists. If it may read it but not do the action, the error is ErrForbidden.
func Decide(p Principal, a Action, c *journal.Summary) error {
	if p.Turn != "" {
		if c != nil {
			return ErrNotFound // also for the turn's own conversation, which the producer doesn't have to know
		}
		return ErrForbidden
	}
	if c != nil && strings.HasPrefix(c.ID, journal.SystemPrefix) {
		// Only the gateway writes its own logs, and only admins read them.
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

// granted returns the access that a conversation's owner has granted to a principal: AccessWrite, AccessRead or "". Principals
// of other tenants never have access.
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

// DecideTurn is Decide for one turn of a conversation. The producer to which the turn was left may push its stream, and nothing
// else.
func DecideTurn(p Principal, a Action, turn string, c *journal.Summary) error {
	if p.Turn != "" && p.Turn == turn && a == ActionAgent {
		return nil
	}
	return Decide(p, a, c)
}

// The kinds of access that a grant can give.
const (
	AccessRead  = "read"
	AccessWrite = "write" // and read
)

// WholeTenant, as the subject of a grant, stands for every subject of the owner's tenant.
const WholeTenant = "*"

type fromKey struct{}

// WithFrom returns a context that carries the address from which a request came, for the audit log.
func WithFrom(ctx context.Context, from string) context.Context {
	return context.WithValue(ctx, fromKey{}, from)
}

// Actor returns the principal of a request in the form that the audit log records.
func Actor(ctx context.Context, p Principal) audit.Actor {
	from, _ := ctx.Value(fromKey{}).(string)
	return audit.Actor{Admin: p.Admin, Acting: p.Acting, Tenant: p.Tenant, Subject: p.Subject, From: from}
}
