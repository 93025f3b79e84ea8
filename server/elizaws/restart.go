package elizaws

import (
	"encoding/json"

	"github.com/leat-dev/leat/gateway/hub"
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
