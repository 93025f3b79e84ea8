// Package chats finds the conversations and turns of clients that know only the ids that they have chosen themselves. Outputs for such clients
// share it, so a chat of one of them is the same conversation for the others.
//
// # Invariants
//
//   - Two principals with the same chat id have two conversations. The conversations of others are never found, also if they are shared.
//   - Requests at the same time agree on the conversation of a new chat without a lock, because its id is derived and not stored.
//   - A chat that was deleted is not created again.
package chats

import "github.com/leat-dev/leat/internal/gateway"

// Chats are the chats of a gateway. The methods may be called from several goroutines.
type Chats struct{ Gateway *gateway.Gateway }
