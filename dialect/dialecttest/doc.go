// Package dialecttest is the conformance suite of dialects. Every dialect runs [Run] over a corpus of streams; [Fold] and
// [Dump] show what a stream comes to.
package dialecttest
