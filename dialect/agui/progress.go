package agui

import (
	"slices"
	"strings"
)

// families are the prefixes of the types of the protocol's own events of a run.
var families = []string{"TEXT_MESSAGE_", "REASONING_", "THINKING_", "TOOL_CALL_", "STEP_", "STATE_", "ACTIVITY_"}

// progress recognizes the protocol's events of a run. RAW and CUSTOM belong to the application, which may send heartbeats with them.
func progress(kind string) bool {
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
