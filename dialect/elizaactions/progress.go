package elizaactions

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
)

// progress recognizes chunks and callbacks with a text. Some of them give no operations: a chunk that is buffered because it repeats the
// status, and a callback that repeats it.
func progress(f dialect.Frame) bool {
	var in struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(f.Data, &in) != nil || in.Type != "chunk" && in.Type != "callback" {
		return false
	}
	return decoding.String(in.Text) != ""
}
