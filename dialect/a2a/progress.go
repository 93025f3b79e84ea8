package a2a

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes updates of a task. An agent repeats the state "working" to report that it works, and such an update may have no
// text, so that it gives no operations. Both versions are recognized, with and without the JSON-RPC response around the update.
func progress(f dialect.Frame) bool {
	var in struct {
		Result json.RawMessage `json:"result"`
	}
	raw := json.RawMessage(f.Data)
	if json.Unmarshal(raw, &in) == nil && in.Result != nil {
		raw = in.Result
	}
	var u update
	if json.Unmarshal(raw, &u) != nil {
		return false
	}
	switch u.Kind {
	case "task", "status-update", "artifact-update":
		return true
	}
	return u.Task != nil || u.Status != nil || u.Artifact != nil
}
