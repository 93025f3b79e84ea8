package openaichat

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes tokens. Servers send an empty delta while they hold back a tool call or hidden reasoning; a chunk without
// choices carries nothing of the answer.
func progress(f dialect.Frame) bool {
	var in struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Choices) > 0
}
