package native

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// discover lists what an agent's upstream offers. It asks only upstreams that are configured, with their own credentials: an address in
// the request would let it reach whatever the gateway can reach. It is a POST because it calls them.
func (n *native) discover(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	name := r.PathValue("name")
	offers, err := n.gw.Discover(r.Context(), p, name)
	switch {
	case err == nil:
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrForbidden), r.Context().Err() != nil:
		return err
	case errors.Is(err, agent.ErrNoDiscovery):
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "the upstream of %s can't be asked what it offers", name)
	default:
		return server.Errorf(http.StatusBadGateway, gateway.ReasonUpstream, "%s", agent.OneLine(err))
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"offers": append([]agent.Offer{}, offers...)})
	return nil
}
