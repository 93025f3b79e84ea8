// Package transcript folds the events of a log into messages and turns. No other package knows the effect of an event: the gateway
// compacts logs, merges feeds and takes snapshots with it, and clients keep their view of a conversation up to date with it.
//
// A reader keeps one [Transcript]. It calls [Transcript.Reset] with a snapshot, then [Transcript.Apply] with each event in order of
// seq. After [ErrGap] or [ErrMismatch] it must fetch a new snapshot and reset. [Transcript.AddPage] adds older messages.
// docs/protocol.md specifies the same rules for clients in other languages, and testdata has vectors for them.
//
// Invariants
//
//   - Apply is idempotent. Each thing that an event changes (a field, a part's state, its notes, a message, a request, a turn, the
//     conversation) remembers the seq of its last change and ignores an equal or lower one; an id that exists is never started again. A
//     reader that lost its connection inside a batch may therefore receive the batch again, merged differently.
//   - After the seq, the offset of a text decides: at the end of the text, the event appends; before the end, only the new suffix
//     counts; beyond the end, Apply returns ErrGap.
//   - A turn.end closes everything that its turn left open, and takes effect once. Later events of the turn are dropped and counted;
//     events without a turn still apply. A part that has ended, by itself or with its turn, can only be retracted, by an empty
//     replace. "Later" is by seq: an event from before the end applies even if it arrives after the end, as happens after a reconnect.
//   - Folding the result of [Merge] for any range, or of [Compact] for a whole log, equals folding the events themselves, for a reader whose
//     cursor is before the range, inside it or at its end.
//   - The pieces of an operation ([Split]) take effect when the last one is applied.
//   - A [Snapshot] shares no memory with its transcript that is ever written. Resetting to it and applying the later events equals
//     folding the log, from the snapshot's first message on. The same is true after AddPage.
//   - Events about messages that the transcript doesn't have, because they are older than the window or evicted, are ignored. A truncate
//     to such a message removes everything.
//
// The package is pure: it has no clock, goroutine, input or output. A Transcript is not safe for concurrent use; a Snapshot may be read by
// several goroutines.
package transcript
