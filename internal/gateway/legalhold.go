package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Hold is a legal hold. It protects a conversation, or all conversations of a subject, from being deleted, truncated, trimmed
// or purged by anyone, until it is released. Either Conversation is set, or Subject and, if the gateway has tenants,
// Tenant.
type Hold struct {
	Conversation string `json:"conversation,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	// Since is when it was placed, in epoch milliseconds.
	Since int64 `json:"since"`
}

// key returns the hold's key. It contains a digest of the subject, because names must not be in keys.
func (h Hold) key() string {
	if h.Conversation != "" {
		return journalkey.HoldConversation(h.Conversation)
	}
	return journalkey.HoldSubject(h.Tenant, h.Subject)
}

func (h Hold) String() string {
	if h.Conversation != "" {
		return fmt.Sprintf("conversation %q", h.Conversation)
	}
	return fmt.Sprintf("subject %q", h.Subject)
}

// Holds is the set of a gateway's legal holds. Its methods may be called from several goroutines. All holds are in
// memory, since each removal has to look them up.
type Holds struct {
	journal Journal
	audit   *audit.Log
	// mu guards byKey. A removal has it locked for reading until the removal is committed, so that Place returns only after
	// all removals that it could have prevented are done.
	mu    sync.RWMutex
	byKey map[string]Hold
}

// load reads the stored holds. It fails if one can't be read, because protected conversations could be deleted without it.
func (h *Holds) load(ctx context.Context) error {
	keys, err := h.journal.Keys(ctx, journalkey.HoldPrefix)
	if err != nil {
		return fmt.Errorf("gateway: load holds: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kv := range keys {
		if kv.Value == nil {
			return fmt.Errorf("gateway: stored hold %s: %w; restore the last backup", kv.Key, journal.ErrCorrupt)
		}
		var hold Hold
		if err := json.Unmarshal(kv.Value, &hold); err != nil {
			return fmt.Errorf("gateway: stored hold %s: %w", kv.Key, err)
		}
		h.byKey[kv.Key] = hold
	}
	return nil
}

// check returns an error if the principal may not place or release a hold, or if the hold is invalid. Only admins may
// place and release holds. Whether the subject exists isn't checked, because the gateway has no list of users.
func (h *Holds) check(p Principal, hold Hold) error {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return err
	}
	if (hold.Conversation == "") == (hold.Subject == "") || hold.Conversation != "" && hold.Tenant != "" {
		return reject(ReasonInvalid, "hold: either a conversation or a subject is required")
	}
	for name, v := range map[string]string{"conversation": hold.Conversation, "tenant": hold.Tenant, "subject": hold.Subject} {
		if err := event.CheckID(name, v); err != nil {
			return reject(ReasonInvalid, "%v", err)
		}
	}
	return nil
}

// Place puts a hold in force. If the same hold is in force already, Place returns it unchanged. It waits for removals
// that have begun, and after it returns no other one begins. The hold is in the journal before it is in force.
func (h *Holds) Place(ctx context.Context, p Principal, hold Hold) (Hold, error) {
	if err := h.check(p, hold); err != nil {
		return hold, err
	}
	hold.Since = nowMillis()
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.byKey[hold.key()]; ok {
		return old, nil
	}
	if hold.Conversation != "" {
		if _, err := summaryFor(ctx, h.journal, p, ActionAdmin, hold.Conversation); err != nil {
			return hold, err
		}
	}
	v, err := json.Marshal(hold)
	if err != nil {
		return hold, fmt.Errorf("gateway: hold: %w", err)
	}
	if err := h.record(ctx, p, "hold", hold, v); err != nil {
		return hold, err
	}
	h.byKey[hold.key()] = hold
	return hold, nil
}

// Release ends a hold. If there is no such hold, the error is ErrNotFound.
func (h *Holds) Release(ctx context.Context, p Principal, hold Hold) error {
	if err := h.check(p, hold); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.byKey[hold.key()]; !ok {
		return ErrNotFound
	}
	if err := h.record(ctx, p, "release", hold, nil); err != nil {
		return err
	}
	delete(h.byKey, hold.key())
	return nil
}

// record stores a hold's new value, or deletes it if value is nil, in one commit with its audit entry.
func (h *Holds) record(ctx context.Context, p Principal, action string, hold Hold, value []byte) error {
	err := h.audit.Record(ctx, audit.Entry{
		Action: action, Actor: Actor(ctx, p), Conversation: hold.Conversation, Tenant: hold.Tenant, Subject: hold.Subject,
	}, journal.KeyValue{Key: hold.key(), Value: value})
	if err != nil {
		return JournalError(action, err)
	}
	return nil
}

// List returns all holds, those on conversations first, each kind sorted by name.
func (h *Holds) List() []Hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	holds := make([]Hold, 0, len(h.byKey))
	for _, hold := range h.byKey {
		holds = append(holds, hold)
	}
	slices.SortFunc(holds, func(a, b Hold) int {
		if (a.Conversation == "") != (b.Conversation == "") {
			return strings.Compare(b.Conversation, a.Conversation)
		}
		return strings.Compare(a.Conversation+"\x00"+a.Tenant+"\x00"+a.Subject, b.Conversation+"\x00"+b.Tenant+"\x00"+b.Subject)
	})
	return holds
}

// HoldOn returns the hold that protects a conversation, on itself or on its owner. If there is none, ok is false.
func (h *Holds) HoldOn(s *journal.Summary) (hold Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.find(s)
}

// HoldOnSubject returns the hold on a subject. If there is none, ok is false.
func (h *Holds) HoldOnSubject(tenant, subject string) (hold Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	hold, ok = h.byKey[Hold{Tenant: tenant, Subject: subject}.key()]
	return hold, ok
}

// find returns the hold that protects a conversation. h.mu is locked.
func (h *Holds) find(s *journal.Summary) (hold Hold, ok bool) {
	if hold, ok = h.byKey[Hold{Conversation: s.ID}.key()]; !ok && s.Owner != "" {
		hold, ok = h.byKey[Hold{Tenant: s.Tenant, Subject: s.Owner}.key()]
	}
	return hold, ok
}

// Removing must be called before anything is removed from a conversation. If a hold protects it, the error is a *Rejection.
// Otherwise no hold can be placed until release is called, which the caller does once the removal is committed.
// release must be called exactly once, and soon: Place and Release wait for it.
func (h *Holds) Removing(s journal.Summary) (release func(), err error) {
	h.mu.RLock()
	if hold, ok := h.find(&s); ok {
		h.mu.RUnlock()
		return nil, reject(ReasonHeld, "a legal hold on %v prevents this; release the hold first", hold)
	}
	return h.mu.RUnlock, nil
}
