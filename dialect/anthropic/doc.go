// Package anthropic decodes and encodes the stream of the Anthropic Messages API, version 2023-06-01, as its documentation describes it under
// "Streaming Messages". The decoder accepts events with and without SSE names. The events of version 2026-10-21 are the same.
//
//	message_start, message_delta, message_stop   a message with its model, usage and stop reason; the end of the turn
//	content_block_start, _delta, _stop           a part: text, thinking, or a tool with its input
//	blocks whose type ends in _tool_result       the output and state of a tool that the server ran
//	error                                        the failure of the turn
//	ping                                         nothing: it only keeps the connection open
//
// Invariants of the decoder
//
//   - The key of a message is its upstream id, the key of a part the ordinal of its block. A repeated message_start of the current
//     message changes nothing; one with another id ends the current message and starts the next.
//   - Consecutive text blocks are one text, because the API splits a text, even inside a sentence, at the begin and end of each citation.
//     A block between two texts (a tool, a result, thinking) makes the later text a separate paragraph.
//   - The deltas of a tool's arguments are its input; without deltas the input is {}. The result of a server tool is a separate block,
//     matched by id, with the output and the state. A call that the client has to run has no state, because the stream doesn't have
//     its result.
//   - message_stop ends the turn, unless the stop reason is pause_turn: the turn then continues with the next message of the same stream,
//     and a stream that ends there was cut short. A refusal is a failure with the upstream's explanation.
//   - Usage is the last value reported for each message, summed over the messages of the turn.
//   - Unknown blocks, deltas and events are counted and ignored. Citations and signatures are recognized and ignored, because they
//     aren't part of the answer's text.
//
// Invariants of the encoder
//
//   - Events are named, blocks have indexes from 0 without gaps, and there is one message_start. Official clients drop events without a name
//     and show no text of a block whose index has a gap before it.
//   - message_stop follows only a complete message. A message that fails ends with an error event instead.
package anthropic
