package agentsdk

import "strings"

// progress recognizes the events of an iteration. "ping" only keeps the connection open.
func progress(kind string) bool {
	for _, family := range []string{"content_block_", "message_", "iteration_", "tool_execution_"} {
		if strings.HasPrefix(kind, family) {
			return true
		}
	}
	return false
}
