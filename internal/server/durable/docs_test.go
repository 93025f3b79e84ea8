package durable

import (
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

// The examples of docs/outputs/durable-streams.md run unchanged, except for the address and the token.
func TestDocumentation(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.answered(gateway.Principal{Admin: true}, "demo", "Hello")
	h.RunExamples("durable-streams.md", nil)
}
