// Package wire serves voice connections: WebSockets with PCM in both directions and JSON frames between it. docs/protocol.md describes
// the frames. The package knows no gateway; a [Conversation] is what it needs of one.
//
// A connection has goroutines that don't wait for each other:
//
//	reader: client frames → session, microphone, orders
//	session (writer): PCM, flushes and frames → client
//	microphone: audio → recogniser → messages
//	orders: stops, messages and marks → conversation, in their order
//	follower: conversation → session
//
// Invariants
//
//   - An interruption ends the speech before anything is stored, so a slow disk doesn't delay it.
//   - How far the person has heard is stored before the message that interrupted, so the agent gets it with that message.
//   - A conversation has at most one connection for each listener. A newer one replaces it, after the older one has ended.
//   - Every goroutine has ended when [Service.Serve] returns.
package wire
