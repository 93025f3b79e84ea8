package langgraph

import (
	"strings"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes the events that show work of the graph's nodes, also those that give no operations, such as debug. The server's
// heartbeats are SSE comments, which aren't frames at all.
func progress(f dialect.Frame) bool {
	mode, _, _ := strings.Cut(f.Event, "|")
	switch mode {
	case "messages", "messages/partial", "messages/complete", "messages/metadata", "values", "updates", "custom", "debug", "events",
		"tasks", "checkpoints":
		return true
	}
	return false
}
