// Restarts: the frame that reports changes which wait for one, and the route that asks for it.

package elizaws

import (
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
)

// RestartRequired returns the frame that reports changes that wait for a restart of the gateway. Every socket gets it.
func RestartRequired(reasons []string) hub.Frame {
	b, err := json.Marshal(struct {
		Type    string   `json:"type"`
		Reasons []string `json:"reasons"`
	}{"restart-required", reasons})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return hub.Frame{Broadcast: true, JSON: b}
}

// restart answers POST /api/agent/restart. The response is sent before the gateway restarts.
func (s *surface) restart(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	if err := s.Restart(); err != nil {
		return err
	}
	f := s.currentStatus(false, true, true)
	server.WriteJSON(w, http.StatusOK, struct {
		OK      bool        `json:"ok"`
		Pending bool        `json:"pendingRestart"`
		Status  statusFrame `json:"status"`
	}{true, *f.PendingRestart, f})
	return nil
}
