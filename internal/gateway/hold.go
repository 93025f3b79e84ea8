package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Hold keeps a conversation, or all that belong to a subject, from being deleted, truncated, trimmed or purged by
// anybody: a legal hold. It stands until it is released.
type Hold struct {
	Conversation string `json:"conversation,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	// Since is when it was placed, epoch milliseconds.
	Since int64 `json:"since"`
}

// key is where a hold is stored. A subject's name stands in values only.
func (h Hold) key() string {
	if h.Conversation != "" {
		return holdKeys + "conversation/" + h.Conversation
	}
	return holdKeys + "subject/" + audit.Digest(h.Tenant, h.Subject)
}

const holdKeys = "hold/"

func (h Hold) String() string {
	if h.Conversation != "" {
		return fmt.Sprintf("conversation %q", h.Conversation)
	}
	return fmt.Sprintf("subject %q", h.Subject)
}

// Holds are all legal holds of a gateway. The methods may be called from several goroutines.
type Holds struct {
	g *Gateway
	// mu protects held. Whoever removes something keeps it for reading until that is committed, so that a hold that was
	// placed is one that nothing slipped past.
	mu   sync.RWMutex
	held map[string]Hold // by key
}

// Holds returns the gateway's legal holds.
func (g *Gateway) Holds() *Holds { return g.holds }

func (h *Holds) load(ctx context.Context) error {
	keys, err := h.g.journal.Keys(ctx, holdKeys)
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
			return fmt.Errorf("gateway: stored hold %s: %w", kv.Key, err) // to start without it could lose what is held
		}
		h.held[kv.Key] = one
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

// Place puts a hold, which counts from when Place returns. One that stands already is left as it is and returned.
func (h *Holds) Place(ctx context.Context, p Principal, one Hold) (Hold, error) {
	if err := h.check(p, one); err != nil {
		return one, err
	}
	one.Since = now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.held[one.key()]; ok {
		return old, nil
	}
	if one.Conversation != "" {
		if _, err := h.g.Conversation(ctx, p, ActionAdmin, one.Conversation); err != nil {
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
	h.held[one.key()] = one
	return one, nil
}

// Release takes a hold away; ErrNotFound where there is none.
func (h *Holds) Release(ctx context.Context, p Principal, one Hold) error {
	if err := h.check(p, one); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.held[one.key()]; !ok {
		return ErrNotFound
	}
	if err := h.record(ctx, p, "release", one, nil); err != nil {
		return err
	}
	delete(h.held, one.key())
	return nil
}

// record stores what became of a hold together with its entry.
func (h *Holds) record(ctx context.Context, p Principal, action string, one Hold, value []byte) error {
	err := h.g.audit.Record(ctx, audit.Entry{
		Action: action, By: by(ctx, p), Conversation: one.Conversation, Tenant: one.Tenant, Subject: one.Subject,
	}, journal.KeyValue{Key: one.key(), Value: value})
	if err != nil {
		return journalError(action, err)
	}
	return nil
}

// List returns all holds, conversations first, each kind by name.
func (h *Holds) List() []Hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]Hold, 0, len(h.held))
	for _, one := range h.held {
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

// Holding returns what keeps a conversation; ok is false where nothing does.
func (h *Holds) Holding(s *journal.Summary) (one Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.holding(s)
}

// HoldingSubject returns the hold of a subject itself.
func (h *Holds) HoldingSubject(tenant, subject string) (one Hold, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	one, ok = h.held[Hold{Tenant: tenant, Subject: subject}.key()]
	return one, ok
}

func (h *Holds) holding(s *journal.Summary) (one Hold, ok bool) {
	if one, ok = h.held[Hold{Conversation: s.ID}.key()]; !ok && s.Owner != "" {
		one, ok = h.held[Hold{Tenant: s.Tenant, Subject: s.Owner}.key()]
	}
	return one, ok
}

// Removing is called before something is taken from a conversation: a *Rejection where a hold keeps it. Else no hold is
// placed until release is called, once the removal is committed.
func (h *Holds) Removing(s journal.Summary) (release func(), err error) {
	h.mu.RLock()
	if one, ok := h.holding(&s); ok {
		h.mu.RUnlock()
		return nil, held(one)
	}
	return h.mu.RUnlock, nil
}

func held(one Hold) *Rejection {
	return reject(ReasonHeld, "a legal hold on %v keeps this; nothing of it can be removed until the hold is released", one)
}
