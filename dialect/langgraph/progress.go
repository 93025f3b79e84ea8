package langgraph

import (
	"strings"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes what the graph's nodes do. Heartbeats of the server are comments.
func progress(f dialect.Frame) bool {
	mode, _, _ := strings.Cut(f.Event, "|")
	switch mode {
	case "messages", "messages/partial", "messages/complete", "messages/metadata", "values", "updates", "custom", "debug", "events",
		"tasks", "checkpoints":
		return true
	}
	return false
}
