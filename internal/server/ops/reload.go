package ops

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// Reloaded is the result of a configuration reload.
type Reloaded struct {
	Applied []string `json:"applied"` // keys that were applied
	Pending bool     `json:"pendingRestart"`
	Reasons []string `json:"pendingRestartReasons"` // changed since the start
}

// RegisterReload adds POST /api/config/reload, with which the admin reloads the configuration.
//
// The response lists what was applied at once and what waits for a restart. If reload returns an error,
// nothing was changed.
func RegisterReload(s *server.Server, reload func() (Reloaded, error)) {
	s.Handle(server.Route{
		Method: http.MethodPost, Pattern: "/api/config/reload", Access: server.Admin,
		Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			report, err := reload()
			if err != nil {
				return err
			}
			server.WriteJSON(w, http.StatusOK, struct {
				OK bool `json:"ok"`
				Reloaded
			}{true, report})
			return nil
		},
	})
}
