// Package event defines the canonical events of a conversation's log.
//
// Whatever dialect an agent speaks, what it says becomes a sequence of these events, and every reader,
// store and renderer works on them alone.
//
// Invariants
//
//   - An event is flat JSON. Its hot fields (who, where, which text) lie in [Event]; everything that only
//     some types carry lies in [Body], nil where there is none.
//   - Text is never guessed: [PartAppend] adds at Offset, counted in bytes of UTF-8; [PartReplace] gives the whole content anew.
//   - The same type also carries a dialect's operations: then Seq, At, Turn and Offset are zero, and Message and Part
//     hold upstream keys in place of ids. The gateway maps and stamps them.
//   - The package is pure: no clock, no randomness, no input or output.
package event
