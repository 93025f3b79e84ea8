// Package eliza is an agent behind an Eliza server. A conversation is made there once and kept with the one here; a turn is a
// message in it, answered by the stream of the chat. What the server's agent is about beside its turns comes over its socket
// and is told as signals.
//
// Invariants
//
//   - A conversation that the server no longer knows is made anew, once a turn.
//   - A message has the turn's key as its id, by which the server tells a repeated one.
//   - The history of an answer's callbacks is that of the server's list of messages, since the stream has none.
//   - The socket is one for all turns, is connected again when it ends, and ends with Close.
package eliza
