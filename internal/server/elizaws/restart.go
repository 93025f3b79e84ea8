package elizaws

import (
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
)

// RestartRequired is the frame that tells everybody that something was changed which waits for a restart of the gateway.
func RestartRequired(reasons []string) hub.Frame {
	b, err := json.Marshal(struct {
		Type    string   `json:"type"`
		Reasons []string `json:"reasons"`
	}{"restart-required", reasons})
	if err != nil {
		panic(err) // strings have a JSON form
	}
	return hub.Frame{Everybody: true, JSON: b}
}

// restart answers POST /api/agent/restart. The answer comes before the gateway ends, and says that it is about to.
func (s *surface) restart(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	if err := s.opt.Restart(); err != nil {
		return err
	}
	f := s.now(false, true, true)
	f.Type = ""
	server.WriteJSON(w, http.StatusOK, struct {
		OK      bool        `json:"ok"`
		Pending bool        `json:"pendingRestart"`
		Status  statusFrame `json:"status"`
	}{true, *f.PendingRestart, f})
	return nil
}
