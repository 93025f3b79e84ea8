package langgraph

import (
	"testing"

	"github.com/leat-dev/leat/internal/server/outputtest"
)

// The examples of docs/outputs/langgraph.md run unchanged, except for the address and the token. They build on each other.
func TestDocumentation(t *testing.T) {
	newHarness(t, echo).RunExamples("langgraph.md", outputtest.Except(outputtest.UUIDs+`|"timestamp":\d+|\d{4}-\d\d-\d\dT[\d:.+]+`))
}
