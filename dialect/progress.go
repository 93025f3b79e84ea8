package dialect

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
)

// Advances reports whether a frame shows that the agent works on its answer: the frame gave operations, or the dialect recognizes it as
// progress. Comments, keep-alives and frames of unknown types don't count, so an agent that hangs behind a proxy with heartbeats reaches the
// limit on silence.
func (d Dialect) Advances(f Frame, ops []event.Event) bool {
	return len(ops) > 0 || d.Progress != nil && d.Progress(f)
}

// ProgressTypes returns a Progress for dialects whose frames are JSON objects with a "type". It is true for the types that match.
// If the object has no type, the name of the SSE event is used.
func ProgressTypes(match func(kind string) bool) func(Frame) bool {
	return func(f Frame) bool {
		var in struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(f.Data, &in) != nil {
			return false
		}
		return match(cmp.Or(in.Type, f.Event))
	}
}
