package elizaws

import (
	"encoding/json"

	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/service/webpush"
)

// Notice returns the frame for a notice. Only the sockets of its user get it, so also the operator gets none about the conversations of
// others.
func Notice(n webpush.Notice) hub.Frame {
	b, err := json.Marshal(struct {
		Type string `json:"type"`
		webpush.Notice
	}{"notice", n})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return hub.Frame{Private: true, Tenant: n.Tenant, Subject: n.Subject, JSON: b}
}
