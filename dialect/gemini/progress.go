package gemini

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes chunks of a candidate: a chunk whose parts are empty still stands for a step of the model.
func progress(f dialect.Frame) bool {
	var in struct {
		Candidates []json.RawMessage `json:"candidates"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Candidates) > 0
}
