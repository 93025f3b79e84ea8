package compat

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The client of Letta for Node, by its own test: node/letta.test.js.
func TestLetta(t *testing.T) {
	requireNode(t, "@letta-ai/letta-client")
	runClient(t, "node", "node", "--test", "--test-timeout=300000", "letta.test.js")
}

// The client for Python, by its own test: python/letta.py. LEAT_COMPAT_PYTHON is the interpreter of an environment that has it.
func TestLettaPython(t *testing.T) {
	python := cmp.Or(os.Getenv("LEAT_COMPAT_PYTHON"), "python3")
	out, err := exec.CommandContext(t.Context(), python, "-c", "import letta_client; print(letta_client.__version__)").Output()
	if err != nil || strings.TrimSpace(string(out)) != "1.12.1" {
		t.Skip("SKIPPED: the client for Python is not installed; run pip install -r test/compat/python/requirements.txt in a virtual environment, and set LEAT_COMPAT_PYTHON to its python")
	}
	runClient(t, "python", python, "letta.py")
}
