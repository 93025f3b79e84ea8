package compat

import (
	"testing"
)

// The clients of LangGraph for Node, by their own tests: those of the thread stream, and those of runs.
func TestLangGraph(t *testing.T) {
	requireNode(t, "langgraph-1")
	requireNode(t, "langgraph-2")
	for _, file := range []string{"langgraph-thread.test.js", "langgraph-runs.test.js"} {
		t.Run(file, func(t *testing.T) {
			runClient(t, "node", "node", "--test", "--test-timeout=300000", file)
		})
	}
}

// The client of LangGraph for Python, by its own test: python/langgraph_runs.py.
func TestLangGraphPython(t *testing.T) {
	runPython(t, "langgraph_runs.py")
}
