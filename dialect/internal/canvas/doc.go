// Package canvas builds decoders for formats whose turns have one message: parts found by the upstream's keys, texts that grow by
// deltas or are replaced by snapshots, tools, questions, and one end.
//
// A dialect declares a reader, whose Read method applies one frame to a [Canvas], and passes it to [NewDecoder]. The canvas handles ids,
// incomplete characters, limits, state and the order of operations.
//
// Invariants
//
//   - A decoder's state is its reader, encoded as JSON, and the canvas: keys, lengths and hashes, never texts.
//   - The operations of a frame whose Read fails are dropped, and the decoder accepts no further frames.
//   - An operation is emitted only if it changes something.
//   - Everything that an upstream can grow has a limit: open parts, parts of a turn, the length of a key.
package canvas
