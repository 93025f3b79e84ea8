package ollama

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes the model's tokens, also empty ones: Ollama sends an empty text for each token while it buffers a tool call.
func progress(f dialect.Frame) bool {
	var in struct {
		Message  *json.RawMessage `json:"message"`
		Response *json.RawMessage `json:"response"`
	}
	return json.Unmarshal(f.Data, &in) == nil && (in.Message != nil || in.Response != nil)
}
