// Package eliza serves the dashboard chat of Eliza's clients: conversations, messages and streams. docs/eliza.md specifies the
// routes, the additions to Eliza's own server, and the differences from it.
//
// The program calls [Register], [RegisterEmotes] and [RegisterTerminal] before the server starts, and hands [Updates] and
// [Proactive] to the gateway as watchers.
//
// Invariants
//
//   - An assistant message of Eliza is a turn: the visible texts of its assistant messages, joined by blank lines, under the id of the
//     first. The stream and the list compute it from the same transcript, by the same functions.
//   - Streams are computed from states, not from deltas: each frame takes the client from the text that it has to the current one. A
//     slow reader gets fewer frames and the same text.
//   - A stream ends with exactly one done or error frame. A stream without one was interrupted, and the client can resume it with the
//     id of the last frame that had one.
//   - A client that disconnects stops nothing. A message that is sent twice with one clientMessageId runs one turn.
//   - The gateway authorizes every request.
package eliza
