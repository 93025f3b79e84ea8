package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/leat-dev/leat/event"
)

// scopeMark separates a conversation's name from the scope of its tenant. It needs no escape in a URL.
const scopeMark = "~"

// scopeDigits is the length of a scope after its mark: 64 bits of a digest, so that no two tenants share one by chance.
const scopeDigits = 16

// scope returns the ending of the ids of a tenant's conversations. Without it, a tenant that chooses an id would learn from
// the answer whether another tenant has it. It depends on the tenant alone, so the same choice always gives the same id.
func scope(tenant string) string {
	if tenant == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("leat tenant\x00" + tenant))
	return scopeMark + hex.EncodeToString(sum[:])[:scopeDigits]
}

// scoped reports whether an id has the ending of some tenant's ids.
func scoped(id string) bool {
	i := len(id) - len(scopeMark) - scopeDigits
	if i < 0 || !strings.HasPrefix(id[i:], scopeMark) {
		return false
	}
	return strings.Trim(id[i+len(scopeMark):], "0123456789abcdef") == ""
}

// ConversationID returns the id of a conversation that a client creates for a tenant and gives a name; a UUIDv7 if name is
// empty. A name that already has the tenant's ending is not changed. No conversation is looked up, so a refusal reveals nothing
// about the conversations of others.
func ConversationID(tenant, name string) (string, error) {
	if err := checkConversationID(name); err != nil {
		return "", err
	}
	if tenant == "" && scoped(name) {
		return "", reject(ReasonInvalid, "conversation id %q ends like the ids of a tenant's conversations", name)
	}
	if name == "" {
		name = newID()
	}
	end := scope(tenant)
	if name = strings.TrimSuffix(name, end); len(name)+len(end) > maxConvID {
		return "", reject(ReasonInvalid, "conversation id of %d bytes, at most %d", len(name), maxConvID-len(end))
	}
	return name + end, nil
}

// checkConversationID refuses ids that can't be part of a URL's path, and those of the gateway's own logs.
func checkConversationID(id string) error {
	switch {
	case len(id) > maxConvID:
		return reject(ReasonInvalid, "conversation id of %d bytes, at most %d", len(id), maxConvID)
	case system(id), id == ".", id == "..", strings.ContainsAny(id, "/?#%\\"):
		return reject(ReasonInvalid, "conversation id %q is not allowed", id)
	}
	if err := event.CheckID("conversation", id); err != nil {
		return reject(ReasonInvalid, "%v", err)
	}
	return nil
}
