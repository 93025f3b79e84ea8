// Package transcript folds events into messages and turns. It is the only place that knows what an event does to a
// transcript: logs are compacted, feeds merged, snapshots and pages taken, and readers kept up to date by it.
//
// Invariants
//
//   - [Transcript.Apply] is idempotent: each thing that an event changes (a field, a part's state, its notes, a message, a
//     request, a turn, the conversation) remembers the seq that changed it last and ignores an equal or lower one; a known
//     id is never begun again. So a reader that was cut inside a batch may get it again, merged in another way.
//   - A text's offset decides after the seq: equal, append; below, the new suffix counts; above, [ErrGap].
//   - A turn.end closes all that its turn left open, and happens once. What a turn says after its end is dropped and
//     counted. What comes without a turn still applies. A part that is final, by its own end or its turn's, can only be
//     taken back, by an empty replace. "After" is by seq: an operation from before the end that comes behind it, as it
//     does for a reader that was cut, applies.
//   - Folding [Merge] of any range, or [Compact] of the whole log, gives what folding the range itself gives, for every
//     reader whose cursor is before the range, at its end, or anywhere inside it.
//   - Pieces of an operation ([Split]) change nothing until the last one is there.
//   - A [Snapshot] shares no memory that is ever written with the transcript that it was taken from. Resetting to it and
//     applying what follows gives what the log gives from its first message on; so do the pages put before it.
//   - What is not held (older than a window, evicted) is ignored; a truncate that names it takes everything that is held.
//
// The package is pure: no clock, no goroutine, no input or output. A Transcript is not safe for concurrent use.
package transcript
