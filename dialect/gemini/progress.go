package gemini

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes chunks of a candidate, also those without parts: the model has worked, even if the API shows nothing of it. A
// chunk with the usage alone doesn't count.
func progress(f dialect.Frame) bool {
	var in struct {
		Candidates []json.RawMessage `json:"candidates"`
	}
	return json.Unmarshal(f.Data, &in) == nil && len(in.Candidates) > 0
}
