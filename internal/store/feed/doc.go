// Package feed is the in-memory head of conversations, from which all readers pull.
//
// A feed holds the fold of a conversation's newest messages and a tail of its recent events. It pushes nothing and has no
// queue for a reader: a reader is a [Cursor], which it hands to [Feed.Poll] when it can take more.
//
// Invariants
//
//   - [Feed.Poll] gives one atomic batch for (after, upto]. Folding the batches that follow each other from any snapshot
//     gives the log's own fold from the snapshot's first message on. A reader that was cut inside a batch asks again from
//     the cursor before it.
//   - First of all: a reader without a cursor, with one of another epoch, above the head, or from before the last truncate
//     or trim gets a snapshot. So does one whose cursor's seq was written in another term: the event that the reader has
//     was lost, and its seq was used again. Else a cursor inside the tail gets a merged batch, and an older one what the log has of the
//     changed parts, whole. Nobody gets conversation.truncate as an event.
//   - The budget chooses upto first; the batch is the merge of what lies up to it, and never a piece of that.
//     For an older cursor it also holds every merged operation that began at or before upto, whole, though its seq is higher.
//   - A cursor from so far back that what changed since is longer than [MaxBehind] gets a snapshot too, which is shorter.
//   - A feed is given an event after the log has it, never before; seqs come without holes. It never shows an event that
//     was not published to it, though the log may have it already.
//   - Poll and publish wait for no reader. Nothing is read from the log, merged or encoded under a feed's lock, but the
//     structure of a snapshot is copied there: its cost is that of the parts, not of their texts.
//   - Bytes are encoded once and shared by all readers that stand at the same place.
//   - The package starts no goroutines.
package feed
