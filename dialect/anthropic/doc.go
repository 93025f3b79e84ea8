// Package anthropic decodes the stream of the Anthropic Messages API, with or without the names of its SSE events.
//
// Invariants
//
//   - A message's key is its upstream id, a part's key the ordinal of its block. A second message_start with the id of the
//     message at hand changes nothing; one with another id ends the message where it stands and begins the next.
//   - Text blocks that follow each other directly go on in the same text: the upstream cuts a text, in the middle of a
//     sentence even, wherever a citation begins or ends. Any block between two texts (a tool, its result, thinking) makes
//     the later one a paragraph of its own.
//   - A tool's arguments are its input, as they come; without any they are {}. What a server's tool gave comes in a block
//     of its own, which finds the tool by its id; it brings the output and the state. A call that the client is to run has
//     no state, since this stream does not tell what became of it.
//   - message_stop is the turn's end, but for the stop reason pause_turn: then the turn goes on with the next message of
//     the same stream, and a stream that ends there was cut short. A refusal is a failure with the upstream's explanation.
//   - Usage is the upstream's last word for each message, added up over the messages of the turn.
//   - Blocks, deltas and events that are not known are counted and change nothing. Citations and signatures are known
//     and left out: they are no part of what is said.
package anthropic
