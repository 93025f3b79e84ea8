package native

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// discover answers POST /api/agents/{name}/discover: what an agent's upstream offers. It calls only configured upstreams, with
// their own credentials. An address in the request would let a caller reach any host that the gateway can reach.
//
// An upstream's own failure is 502 with one line of its text, because the admin who configures the agent
// needs it. A failure of the request itself is returned unchanged.
func (n *native) discover(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	name := r.PathValue("name")
	offers, err := n.gw.Catalog().Discover(r.Context(), p, name)
	switch {
	case err == nil:
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrForbidden), r.Context().Err() != nil:
		return err
	case errors.Is(err, agent.ErrNoDiscovery):
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "agent %s: upstreams of this kind don't support discovery", name)
	default:
		return server.Errorf(http.StatusBadGateway, gateway.ReasonUpstream, "%s", agent.OneLine(err))
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"offers": append([]agent.Offer{}, offers...)})
	return nil
}
