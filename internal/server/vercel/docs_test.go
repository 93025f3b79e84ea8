package vercel

import (
	"testing"

	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

var withoutIDs = outputtest.Except(outputtest.UUIDs)

// The examples of docs/outputs/vercel.md run unchanged, except for the address and the token.
func TestDocumentation(t *testing.T) {
	newHarness(t, echo, quota.Limits{}).RunExamples("vercel.md", func(s string) string { return withoutIDs(withoutComments(s)) })
}
