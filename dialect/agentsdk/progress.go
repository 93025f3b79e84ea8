package agentsdk

import (
	"slices"
	"strings"
)

// families are the prefixes of the types of all events of an iteration.
var families = []string{"content_block_", "message_", "iteration_", "tool_execution_"}

// progress recognizes the events of an iteration. ping only keeps the connection open, so it must not keep a silent turn alive.
func progress(kind string) bool {
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
