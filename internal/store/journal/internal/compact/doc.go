// Package compact contains what is the same in all journals: the encoding of events in chunks, the compaction of a log, the
// traces of turns, and the removal of deleted data from records.
//
// A journal encodes each commit with [Encode], and reads it back with [Decode]. To compact a stretch of a log, it calls [Merge]
// with the decoded events, encodes the result with [Rows], and stores it in place of the live chunks, together with the traces.
//
// # Invariants
//
//   - A chunk has one line of JSON for each event. JSON escapes line ends, so no event contains one.
//   - Compaction preserves the fold. A log that is compacted in any number of steps folds to the same transcript as the original events.
//   - Blank keeps the length of a chunk if it can, and never changes seqs.
//   - The package is pure: it has no clocks, goroutines or I/O.
package compact
