package letta

import (
	"strings"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
)

// clientID returns the client_message_id of a message of a turn. It tells the turn and the message when the message comes back in a
// history.
func clientID(in agent.Input, message string) string { return in.Turn + "." + message }

// parseClientID takes apart the id of a message that a gateway of Leat has sent.
func parseClientID(client string) (turn, message string, ok bool) {
	turn, message, ok = strings.Cut(client, ".")
	return turn, message, ok && message != "" && uuid.Validate(turn) == nil
}
