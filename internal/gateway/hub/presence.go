package hub

import "github.com/leat-dev/leat/internal/gateway"

// activeClient is the conversation that one socket shows to its user.
type activeClient struct {
	tenant, subject string
	conversation    string
	turn            int64 // order of the SetActive calls; the highest is the latest
}

// SetActive records the conversation that the user of a socket has open. Pass an empty conversation if the user leaves it, and when
// the socket closes; otherwise its entry would stay forever.
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

// Active returns the conversation that a user has open. If several sockets have one, the last call of SetActive counts. It
// returns "" if no socket of the user has any. The caller has to check whether the user may still see it.
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

// Looks reports whether a user has a conversation open on any socket.
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
