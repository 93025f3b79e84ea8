package ops

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// Reloaded is what it came to that a configuration was loaded again.
type Reloaded struct {
	Applied []string `json:"applied"` // the keys that count from now on
	Pending bool     `json:"pendingRestart"`
	Reasons []string `json:"pendingRestartReasons"` // why, since the gateway was started
}

// RegisterReload adds POST /api/config/reload, by which the admin has the configuration loaded again.
func RegisterReload(s *server.Server, reload func() (Reloaded, error)) {
	s.Handle(server.Route{
		Method: http.MethodPost, Pattern: "/api/config/reload", Access: server.Admin,
		Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			done, err := reload()
			if err != nil {
				return err
			}
			server.WriteJSON(w, http.StatusOK, struct {
				OK bool `json:"ok"`
				Reloaded
			}{true, done})
			return nil
		},
	})
}
