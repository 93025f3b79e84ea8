package native

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// attachRequest is the body of POST /api/agents/{name}/sessions.
//
// Session is an id from the list of sessions. The new conversation belongs to Owner of Tenant, who need
// not be the caller. History asks for the earlier messages of the session.
type attachRequest struct {
	Session string `json:"session"`
	Tenant  string `json:"tenant"`
	Owner   string `json:"owner"`
	Title   string `json:"title"`
	History bool   `json:"history"`
}

// sessions answers GET /api/agents/{name}/sessions: the sessions of an agent's upstream.
func (n *native) sessions(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	sessions, err := n.gw.UpstreamSessions().List(r.Context(), p, r.PathValue("name"))
	return server.Respond(w, map[string]any{"sessions": sessions}, err)
}

// attach answers POST /api/agents/{name}/sessions: it creates a conversation that continues one of them.
func (n *native) attach(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in attachRequest
	if err := server.DecodeStrict(r, &in); err != nil {
		return err
	}
	s, err := n.gw.UpstreamSessions().Attach(r.Context(), p, gateway.AttachOptions{
		Agent: r.PathValue("name"), Session: in.Session, Tenant: in.Tenant, Owner: in.Owner, Title: in.Title, History: in.History,
	})
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusCreated, map[string]any{"conversation": s.ID, "title": s.Title})
	return nil
}

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
	return server.Respond(w, map[string]any{"offers": append([]agent.Offer{}, offers...)}, nil)
}
