// Package eliza serves the dashboard chat of Eliza: its conversations, messages and streams, over the gateway.
//
// docs/eliza.md says what it serves, what it adds and where it differs.
//
// Invariants
//
//   - An assistant message of Eliza is a turn: the visible texts of its assistant messages, joined by blank lines, under
//     the id of the first. The stream and the list take it from the same fold, by the same functions.
//   - Streams are made from states, not from deltas: each frame is what takes the client from the text that it holds to
//     the present one, whatever led there. A slow reader gets fewer frames and the same text.
//   - Every stream whose turn ends, ends with one done or error frame. One that ends without was cut off, and can be
//     attached to again by the id of the last frame that has one.
//   - A client that goes away stops nothing. A message that is sent twice under one clientMessageId runs one turn.
//   - What a client may do is for the gateway to decide.
package eliza
