package console

import (
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// Decide interprets a line as the answer to a request: one of the request's options or its number, a decision, or text. Options come
// first, because an agent may offer "y" or "no" with another meaning. Upper and lower case are equal.
func Decide(text string, r *event.Request) (decision event.Decision, reason string) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, option := range r.Options {
		if strings.ToLower(option) == word {
			return event.Decision(option), ""
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(r.Options) {
		return event.Decision(r.Options[n-1]), ""
	}
	// A request for input takes every line as it is, except its options.
	if r.Kind == event.RequestInput {
		return "", text // "yes" may be the requested text
	}
	switch event.Decision(word) {
	case "y", "yes", event.Approve:
		return event.Approve, ""
	case "n", "no", event.Deny:
		return event.Deny, ""
	}
	return "", text
}
