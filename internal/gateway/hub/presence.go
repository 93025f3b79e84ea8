package hub

import "github.com/leat-dev/leat/internal/gateway"

// looking is what one socket's user looks at.
type activeClient struct {
	tenant, subject string
	conversation    string
	turn            int64 // the higher, the later it was said
}

// Look says which conversation the user of a socket looks at; empty: none. A socket that closes says none.
func (h *Hub) SetActive(c *Cursor, p gateway.Principal, conversation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if conversation == "" {
		delete(h.active, c)
		return
	}
	h.looks++
	h.active[c] = activeClient{p.Tenant, p.Subject, conversation, h.looks}
}

// Active returns the conversation that a user looks at, by the socket that said so last; empty where none of theirs does.
// Whether the user may see it is the caller's to ask.
func (h *Hub) Active(p gateway.Principal) (conversation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := int64(0)
	for _, l := range h.active {
		if l.tenant == p.Tenant && l.subject == p.Subject && l.turn > last {
			conversation, last = l.conversation, l.turn
		}
	}
	return conversation
}

// Looks reports whether a user looks at a conversation, on any socket.
func (h *Hub) Looks(p gateway.Principal, conversation string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.active {
		if l.tenant == p.Tenant && l.subject == p.Subject && l.conversation == conversation {
			return true
		}
	}
	return false
}
