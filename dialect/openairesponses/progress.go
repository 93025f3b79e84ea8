package openairesponses

import "strings"

// progress recognizes the events of a response's items. The states of the response itself are repeated while nothing happens, for example
// while the response is queued, and keepalive, whose type has no "response." prefix, only keeps the connection open.
func progress(kind string) bool {
	kind, ok := strings.CutPrefix(kind, "response.")
	switch kind {
	case "created", "queued", "in_progress":
		return false
	}
	return ok
}
