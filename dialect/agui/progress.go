package agui

import "strings"

// progress recognizes the protocol's events of a run. RAW and CUSTOM belong to the application, which may send heartbeats with them.
func progress(kind string) bool {
	for _, family := range []string{"TEXT_MESSAGE_", "REASONING_", "THINKING_", "TOOL_CALL_", "STEP_", "STATE_", "ACTIVITY_"} {
		if strings.HasPrefix(kind, family) {
			return true
		}
	}
	return false
}
