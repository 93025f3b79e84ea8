// Package transcript folds events into messages and turns. It is the only place that knows what an event does to a transcript.
//
// Invariants
//
//   - [Transcript.Apply] is idempotent: each thing that an event changes (a field, a part's state, a message, a request,
//     a turn, the conversation) remembers the seq that changed it last and ignores an equal or lower one; a known id is
//     never started again; nothing of an ended turn applies. So a reader that was cut inside a batch may get it again.
//   - A text's offset decides after the seq: equal, append; below, the new suffix counts; above, [ErrGap].
//   - Folding [Merge] of any range, or [Compact] of the whole log, gives what folding the range itself gives,
//     for every reader whose cursor is before the range, at its end, or anywhere inside it.
//   - [TurnEnd] closes all that its turn left open; it happens once.
//
// The package is pure: no clock, no goroutine, no input or output. A Transcript is not safe for concurrent use.
//
// [TurnEnd]: github.com/leat-dev/leat/event.TurnEnd
package transcript
