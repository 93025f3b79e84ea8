// Package chats finds the conversations and turns of clients that know only the ids that they have chosen themselves. Outputs for such clients
// share it, so a chat of one of them is the same conversation for the others.
//
// The id of a chat is that of one of the user's own conversations, or else the conversation's id is derived from the user and the id of the chat. So a
// page can show a conversation that was begun in the dashboard, and a page that makes up an id gets a conversation that only its user can
// name.
//
// Clients of this kind also send messages again: after an edit, to get another answer, and because a response was lost. The id of the message says
// that it is known. What the client then wants differs from one protocol to the other, so this package only looks it up.
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
