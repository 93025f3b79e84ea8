package responses

import (
	"testing"

	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// The examples of docs/outputs/responses.md run unchanged, except for the address and the token.
//
// They build on each other: the second one shows the thread that the first one has begun, and the last one stops a thread that has nothing to stop.
func TestDocumentation(t *testing.T) {
	newHarness(t, echo, quota.Limits{}).RunExamples("responses.md", outputtest.Except(outputtest.UUIDs))
}
