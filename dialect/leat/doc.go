// Package leat is Leat's own dialect: the canonical events of docs/protocol.md, one JSON object a line, for both directions. A producer
// that can choose its format should choose this one.
//
// Invariants
//
//   - The decoder turns an event into an operation: its message, part and turn are keys, and its seq, time and offset are dropped, because
//     the log assigns them. Appends follow each other in the order of the lines.
//   - The stream answers one turn: the first one that an event names. The turn.end of that turn, or one without a turn, ends the
//     stream. Other turns are inside that turn.
//   - The encoder writes events exactly as a log stores them, and the decoder reads them back.
package leat
