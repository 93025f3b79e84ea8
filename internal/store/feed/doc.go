// Package feed holds the newest part of each conversation in memory. All readers pull from it.
//
// A [Feed] has the fold of a conversation's newest messages and a tail of its recent events. A reader has a [Cursor] and calls [Feed.Poll]
// when its connection can take more. Readers have no queues, so a slow reader costs the gateway only a cursor.
//
// The tail stores an append to a text as a position in the fold's text, in 32 bytes. It covers minutes of an answer, and a reader who
// missed thousands of events gets their text as one string of the fold. Only a reader from before the tail makes the feed read the log.
//
// # Order of calls
//
// A reader calls [Registry.Acquire], then repeats [Feed.Notify], [Feed.Poll] and a wait for the channel, and at the end calls
// [Feed.Release]. [Feed.Next] does the loop. The conversation's writer also acquires the feed, and calls [Feed.Publish] after each commit.
//
// # What a reader gets
//
//   - A snapshot if it has no cursor, or if its cursor is of another epoch, above the head, or from before the last truncate or trim. Also
//     if the cursor's seq belongs to another term: the event was lost, and its seq was used again.
//   - A merged batch of the tail if its cursor is inside the tail.
//   - A merged batch from the log if its cursor is older, unless that batch would exceed 8 MiB. Then it gets a snapshot, which is
//     smaller.
//
// No reader gets conversation.truncate as an event.
//
// # Invariants
//
//   - A batch is atomic and covers (after, upto]. Any snapshot folded with the batches that follow it equals the log's own fold from the
//     snapshot's first message. A reader that was disconnected within a batch asks again from the cursor before it.
//   - The budget determines upto, and the batch is the complete merge of the events up to there. A batch from the log also holds all of a
//     merged operation that began at or before upto, even if its seq is higher.
//   - Events are published after their commit and without gaps. A feed never shows an event that wasn't published to it.
//   - A batch of the tail equals the merge of the log's events to the byte: an append is stored as a position only if the fold's text
//     has the same bytes there.
//   - Poll and Publish wait for no reader. Reading the log, merging and encoding happen outside the feed's lock. Copying the structure of a
//     snapshot happens under it, and costs as much as there are parts, whatever their size.
//   - A batch is encoded once and shared by all readers at the same position, as long as one of them holds it or it is the latest.
//   - The package starts no goroutines.
package feed
