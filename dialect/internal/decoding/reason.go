package decoding

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// StopReason returns the reason that readers get for a format's own stop reason. All names of a limit of length become
// [event.ReasonLength]; any other reason is returned as it is.
func StopReason(name string) string {
	switch strings.ToLower(name) {
	case "length", "max_tokens", "max_output_tokens", "max_tokens_exceeded", "token_limit":
		return event.ReasonLength
	}
	return name
}
