// Package canvas is what decoders are made of whose streams come to one message a turn: parts that are found by the
// upstream's own keys, texts that grow by deltas or come as snapshots, tools, questions, and the one end.
//
// Invariants
//
//   - A decoder's state is its [Reader], as JSON, and the canvas: keys, lengths and hashes, never texts.
//   - What a frame of an error has drawn is dropped; the decoder is spent then.
//   - An operation is only drawn where it changes something.
//   - What an upstream can make grow has a limit: open parts, parts of a turn, the length of a key.
package canvas
