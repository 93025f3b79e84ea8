package openaichat

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes the model's tokens, also empty ones: servers send an empty delta for each token of a tool call that they buffer, or of
// reasoning that they hide. A chunk without choices has no part of the answer.
func progress(f dialect.Frame) bool {
	var in struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Choices) > 0
}
