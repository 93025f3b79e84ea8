package ops

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
)

// RegisterOverview adds GET /api/overview for the admin: the status of agents and channels, and the open turns.
//
// Each request counts as an operator's visit: for the next ten seconds, the agents are checked.
func RegisterOverview(s *server.Server, o *status.Overview) {
	s.Handle(server.Route{
		Method: http.MethodGet, Pattern: "/api/overview", Access: server.Admin,
		Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			server.WriteJSON(w, http.StatusOK, o.Snapshot())
			return nil
		},
	})
}
