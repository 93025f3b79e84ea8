package agui

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// interruptAnswer returns the answer to a request that an interrupt was sent for. The payload is an object as its schema says, or simply true,
// false or a text.
func interruptAnswer(r *event.Request, e *resumeEntry) gateway.Command {
	if e.Status == "cancelled" {
		return gateway.Command{Decision: event.Deny}
	}
	return chats.PayloadAnswer(r, e.Payload)
}
