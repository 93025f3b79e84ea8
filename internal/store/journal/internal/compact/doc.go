// Package compact has the parts of a journal that are the same for all implementations: the encoding of events in chunks, the
// compaction of a log, the traces of turns, and the blanking of records about deleted conversations.
//
// Invariants
//
//   - A chunk has one line of JSON for each event. JSON escapes line ends, so no event contains one.
//   - Compaction preserves the fold. A log that is compacted in any number of steps folds to the same transcript as the original
//     events.
//   - The package is pure: it has no clocks, goroutines or I/O.
package compact
