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

// Hold is a legal hold: it protects a conversation, or all conversations of a subject, from being deleted, truncated, trimmed
// or purged by anyone. It is in force until it is released.
type Hold struct {
	Conversation string `json:"conversation,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	// Since is when it was placed, epoch milliseconds.
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

// holdReader is what Holds needs of the journal.
type holdReader interface {
	keyReader
	keyLister
	summaryReader
}

// Holds is the set of a gateway's legal holds. Its methods may be called from several goroutines.
type Holds struct {
	journal holdReader
	audit   *audit.Log
	// mu guards byKey. A removal has it locked for reading until the removal is committed, so that Place returns only after
	// all removals that it could have prevented are done.
	mu    sync.RWMutex
	byKey map[string]Hold
}

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
		var one Hold
		if err := json.Unmarshal(kv.Value, &one); err != nil {
			return fmt.Errorf("gateway: stored hold %s: %w", kv.Key, err) // without it, protected conversations could be deleted
		}
		h.byKey[kv.Key] = one
	}
	return nil
}

func (h *Holds) check(p Principal, one Hold) error {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return err
	}
	if (one.Conversation == "") == (one.Subject == "") || one.Conversation != "" && one.Tenant != "" {
		return reject(ReasonInvalid, "hold: either a conversation or a subject is needed")
	}
	for name, v := range map[string]string{"conversation": one.Conversation, "tenant": one.Tenant, "subject": one.Subject} {
		if err := event.CheckID(name, v); err != nil {
			return reject(ReasonInvalid, "%v", err)
		}
	}
	return nil
}

// Place puts a hold in force. If the same hold is in force already, Place returns it unchanged.
func (h *Holds) Place(ctx context.Context, p Principal, one Hold) (Hold, error) {
	if err := h.check(p, one); err != nil {
		return one, err
	}
	one.Since = now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.byKey[one.key()]; ok {
		return old, nil
	}
	if one.Conversation != "" {
		if _, err := summaryFor(ctx, h.journal, p, ActionAdmin, one.Conversation); err != nil {
			return one, err
		}
	}
	v, err := json.Marshal(one)
	if err != nil {
		return one, fmt.Errorf("gateway: hold: %w", err)
	}
	if err := h.record(ctx, p, "hold", one, v); err != nil {
		return one, err
	}
	h.byKey[one.key()] = one
	return one, nil
}

// Release ends a hold. If there is no such hold, the error is ErrNotFound.
func (h *Holds) Release(ctx context.Context, p Principal, one Hold) error {
	if err := h.check(p, one); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.byKey[one.key()]; !ok {
		return ErrNotFound
	}
	if err := h.record(ctx, p, "release", one, nil); err != nil {
		return err
	}
	delete(h.byKey, one.key())
	return nil
}

// record stores a hold's new value, or deletes it if value is nil, in one commit with its audit entry.
func (h *Holds) record(ctx context.Context, p Principal, action string, one Hold, value []byte) error {
	err := h.audit.Record(ctx, audit.Entry{
		Action: action, Actor: By(ctx, p), Conversation: one.Conversation, Tenant: one.Tenant, Subject: one.Subject,
	}, journal.KeyValue{Key: one.key(), Value: value})
	if err != nil {
		return JournalError(action, err)
	}
	return nil
}

// List returns all holds, those on conversations first, each kind sorted by name.
func (h *Holds) List() []Hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]Hold, 0, len(h.byKey))
	for _, one := range h.byKey {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Hold) int {
		if (a.Conversation == "") != (b.Conversation == "") {
			return strings.Compare(b.Conversation, a.Conversation)
		}
		return strings.Compare(a.Conversation+"\x00"+a.Tenant+"\x00"+a.Subject, b.Conversation+"\x00"+b.Tenant+"\x00"+b.Subject)
	})
	return out
}

// Holding returns the hold that protects a conversation, on itself or on its owner. If there is none, ok is false.
func (h *Holds) Holding(s *journal.Summary) (one Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.holding(s)
}

// HoldingSubject returns the hold on a subject. If there is none, ok is false.
func (h *Holds) HoldingSubject(tenant, subject string) (one Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	one, ok = h.byKey[Hold{Tenant: tenant, Subject: subject}.key()]
	return one, ok
}

func (h *Holds) holding(s *journal.Summary) (one Hold, ok bool) {
	if one, ok = h.byKey[Hold{Conversation: s.ID}.key()]; !ok && s.Owner != "" {
		one, ok = h.byKey[Hold{Tenant: s.Tenant, Subject: s.Owner}.key()]
	}
	return one, ok
}

// Removing must be called before anything is removed from a conversation. If a hold protects it, the error is a *Rejection.
// Otherwise no hold can be placed until release is called, which the caller does once the removal is committed.
func (h *Holds) Removing(s journal.Summary) (release func(), err error) {
	h.mu.RLock()
	if one, ok := h.holding(&s); ok {
		h.mu.RUnlock()
		return nil, heldError(one)
	}
	return h.mu.RUnlock, nil
}

func heldError(one Hold) *Rejection {
	return reject(ReasonHeld, "a legal hold on %v keeps this; nothing of it can be removed until the hold is released", one)
}
