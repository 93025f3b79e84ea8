package compat

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The clients of LangGraph, by their own tests in the folder node.
func TestLangGraph(t *testing.T) {
	requireNode(t, "langgraph-1")
	requireNode(t, "langgraph-2")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	for _, file := range []string{"langgraph-thread.test.js", "langgraph-runs.test.js"} {
		cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", file)
		cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

// The client of LangGraph for Python, by its own program: python/langgraph_runs.py.
func TestLangGraphPython(t *testing.T) {
	python := cmp.Or(os.Getenv("LEAT_PYTHON"), "python3")
	if err := exec.CommandContext(t.Context(), python, "-c", "import langgraph_sdk").Run(); err != nil {
		t.Skip("SKIPPED: the client of LangGraph for Python is not installed; install langgraph-sdk 0.4.14 (pip install langgraph-sdk==0.4.14) and name the Python that has it in LEAT_PYTHON")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, python, "-W", "error::UserWarning", "langgraph_runs.py")
	cmd.Dir, cmd.Env = "python", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
