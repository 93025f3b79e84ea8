package native

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// headerKey carries a command's idempotency key if the body has none.
const headerKey = "Idempotency-Key"

// command answers POST /api/conversations/{id}/commands.
//
// A key makes a command idempotent: a repetition returns the first result. The header exists for clients
// whose HTTP library sets it with each retry. Two different keys are refused, because to choose one would
// silently break the other's retries.
func (n *native) command(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var c gateway.Command
	if err := server.DecodeStrict(r, &c); err != nil {
		return err
	}
	if key := r.Header.Get(headerKey); key != "" {
		if c.Key != "" && c.Key != key {
			return server.Invalid("the key in the body differs from the %s header; send one of them", headerKey)
		}
		c.Key = key
	}
	ack, err := n.gw.Do(r.Context(), p, r.PathValue("id"), c)
	return server.Respond(w, ack, err)
}
