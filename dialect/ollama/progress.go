package ollama

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes tokens: Ollama sends an empty one while it holds back a tool call.
func progress(f dialect.Frame) bool {
	var in struct {
		Message  *json.RawMessage `json:"message"`
		Response *json.RawMessage `json:"response"`
	}
	return json.Unmarshal(f.Data, &in) == nil && (in.Message != nil || in.Response != nil)
}
