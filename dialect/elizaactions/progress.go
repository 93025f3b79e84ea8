package elizaactions

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes text that is held back, and a callback that repeats its status.
func progress(f dialect.Frame) bool {
	var in struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(f.Data, &in) != nil || in.Type != "chunk" && in.Type != "callback" {
		return false
	}
	return word(in.Text) != ""
}
