package compat

import (
	"testing"
)

// The client of Letta for Node, by its own test: node/letta.test.js.
func TestLetta(t *testing.T) {
	requireNode(t, "@letta-ai/letta-client")
	runClient(t, "node", "node", "--test", "--test-timeout=300000", "letta.test.js")
}

// The client for Python, by its own test: python/letta.py.
func TestLettaPython(t *testing.T) {
	runPython(t, "letta.py")
}
