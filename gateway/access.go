package gateway

import (
	"slices"

	"github.com/leat-dev/leat/journal"
)

// Principal is who asks. The zero value is nobody and may do nothing.
type Principal struct {
	Tenant  string
	Subject string
	// Scopes bound what the subject may do with what it owns; nil grants what an end user may.
	Scopes []string
	// Admin holds the API token (or there is none) and acts for itself.
	Admin bool
}

// Action is what a principal wants to do.
type Action string

// The actions. Those on a conversation are asked with its summary, the others with nil.
const (
	ActionList   Action = "list"
	ActionCreate Action = "create"
	ActionRead   Action = "read"
	ActionWrite  Action = "write"  // send, stop, steer, answer, truncate, rename
	ActionDelete Action = "delete" // the whole conversation
	ActionAgent  Action = "agent"  // speak as the agent: push, inject
	ActionAdmin  Action = "admin"  // operate the gateway
)

// ScopeAgent lets a subject speak as the agent in its own conversations.
const ScopeAgent = "agent"

// Decide is the one place where access is decided, for every surface. A foreign conversation is ErrNotFound, so that
// nobody learns that it exists.
func Decide(p Principal, a Action, c *journal.Summary) error {
	if p.Admin {
		return nil
	}
	if p.Subject == "" || a == ActionAdmin {
		return ErrForbidden
	}
	if c != nil && (c.Tenant != p.Tenant || c.Owner != p.Subject) {
		return ErrNotFound
	}
	switch a {
	case ActionList, ActionCreate, ActionRead, ActionWrite, ActionDelete:
		return nil
	case ActionAgent:
		if slices.Contains(p.Scopes, ScopeAgent) {
			return nil
		}
	}
	return ErrForbidden
}
