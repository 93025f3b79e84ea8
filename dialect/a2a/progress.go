package a2a

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes updates of a task: an agent repeats the state "working" to report that it works. A stream says it as the
// result of JSON-RPC (0.3) or by the name of the field (1.0).
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
