// Package openclaw serves the gateway protocol of OpenClaw, so that its Control UI, its terminal interface and its ACP bridge chat with any
// agent of Leat. docs/outputs/openclaw.md says what works.
//
// # How the protocol maps
//
//   - A connection belongs to one principal: that of the token in its first frame, or of the credentials of its handshake.
//   - A session key "agent:AGENT:NAME" is a conversation: the principal's own one with the id NAME, or the one whose id is derived from the
//     whole key. "main" is such a name. A conversation of another user is "agent:AGENT:@ID".
//   - The id of a run is the idempotency key of the chat.send that began it, which is also the id of the user's message. Any other turn is a run
//     with the turn's id.
//   - An approval is a plugin.approval, and a question is a question. Their ids name the turn and the request.
//
// # Goroutines and locks
//
// A connection has one goroutine that carries out its requests in their order, one for the ticks, one for the list of sessions if the client
// follows it, and one for each conversation that it reads. The last kind is bounded three times: by maxSessions for a connection, which closes
// the one that was used longest ago; by the limit of viewers of the user, since each counts as one; and by the limit of connections of the
// server. All of them end with the connection.
//
// Locks are taken in this order: that of a session, the view of its transcript, that of the connection. The view blocks commits to the
// conversation, so nothing is written while it is open: an update only collects events, and they are written after it, under the other two. So
// a client that accepts no bytes blocks its own requests and sessions, and nothing else.
//
// # Invariants
//
//   - A connection reads the conversations that its client has named. It has no copy of them: what a client misses while it accepts no bytes
//     reaches it in one event, because each event has the whole text so far.
//   - A history and the events after it fit together: the session is locked from the moment at which its transcript is read until the response
//     is written, and later deltas begin at the end of the text in that response.
//   - The numbers of a run's events ascend for a client that reconnects too, because they grow with the log.
//   - A run ends with one final, aborted or error event, which comes before the response to the request that stopped it.
//   - A client that closes a question gets the same answer in the event and in the response.
//   - A disconnect stops nothing.
//   - A method that Leat doesn't have gets the protocol's own error.
package openclaw
