// Package leat is Leat's own dialect: canonical events, one JSON object a line, both ways. A producer that can choose
// its format chooses this one.
//
// Invariants
//
//   - The decoder takes an event as an operation: its message, part and turn are keys; its seq, time and offset, which
//     are the log's to give, are left out. Appends follow each other in the order of the lines.
//   - The stream answers one turn: that of the first event that names one. The turn.end of that turn, or one that names no
//     turn, is the end of the stream. Other turns lie inside it.
//   - The encoder writes an event as a log holds it. What it writes, the decoder reads back.
package leat
