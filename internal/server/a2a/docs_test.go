package a2a

import (
	"testing"

	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// The examples of docs/outputs/a2a.md run unchanged, except for the address and the token.
//
// They build on each other: the second one repeats the message of the first one, and gets the same task.
func TestDocumentation(t *testing.T) {
	newHarness(t, echo, quota.Limits{}).RunExamples("a2a.md", outputtest.Except(outputtest.UUIDs+`|2[0-9-]{9}T[0-9:.]+Z`))
}
