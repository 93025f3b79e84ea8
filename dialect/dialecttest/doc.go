// Package dialecttest is the conformance suite of the dialects. A dialect's tests are usually two lines: [Run] over its own streams, and
// a fuzz target that calls [Fuzz].
//
//	func TestConformance(t *testing.T) {
//		dialecttest.Run(t, Dialect(), dialecttest.OwnStreams(t, Dialect()))
//	}
//
// Run checks the rules of package dialect with every stream: the operations are in order and valid, cutting the bytes at any position
// changes nothing, a decoder restored from a stored state continues exactly like the original, every prefix of a stream is
// reported as cut short, unknown frames change nothing, and invalid ones are errors. [Golden] compares the result of each stream with a
// reviewed file, [Fold] returns the transcript of operations for tests of their content, and [Dump] formats a transcript. [States]
// checks that the states of earlier versions can still be restored; package dialect/all calls it for every dialect.
//
// Everything is deterministic: random divisions have fixed seeds, and ids and times are the same in every run.
//
// A new dialect needs streams for every kind of frame, at least one unfinished stream, and a fuzz target. The suite checks that a decoder is
// consistent; only golden files and tests of the package itself check that it understands its format.
package dialecttest
