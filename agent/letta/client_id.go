package letta

import (
	"strings"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
)

// clientID returns the id that Leat gives a message at the server: the client_message_id of the App Server, the otid of V1.
// Both servers repeat it in their history, where it identifies Leat's turn and message. It is the same after a restart, so V1
// can drop a message that arrives twice.
func clientID(in agent.Input, message string) string { return in.Turn + "." + message }

// parseClientID splits an id that clientID has made. ok is false for the id of another client's message.
func parseClientID(client string) (turn, message string, ok bool) {
	turn, message, ok = strings.Cut(client, ".")
	return turn, message, ok && message != "" && uuid.Validate(turn) == nil
}
