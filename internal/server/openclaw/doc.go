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
// # Invariants
//
//   - A connection reads the conversations that its client has named. It has no copy of them: what a client misses while it accepts no bytes
//     reaches it in one event, because each event has the whole text so far.
//   - A history and the events after it fit together: the session is locked from the moment at which its transcript is read until the response
//     is written, and later deltas begin at the end of the text in that response.
//   - A run ends with one final, aborted or error event, which comes before the response to the request that stopped it.
//   - A disconnect stops nothing.
//   - A method that Leat doesn't have gets the protocol's own error.
package openclaw
