// Package journal defines the durable store of all conversations' logs: the types and the interface that its implementations share.
// The implementations pass the conformance suite in [github.com/leat-dev/leat/internal/store/journal/journaltest].
//
// A writer creates a log by a batch with Create, and then appends batches, each with the seq of the last event that it knows.
// Readers read from any seq. When no turn runs, the log may be compacted.
//
// Invariants
//
//   - If Append returns nil, the batch is durable as configured. If it returns an error, nothing of the batch is stored, unless
//     the error wraps [ErrUnknown]: then the writer must reopen the conversation and read what is there.
//   - The events, key-values and summary of a batch are written in one transaction.
//   - The seqs of a log ascend without gaps as written. Compaction leaves gaps.
//   - A batch whose Expected isn't the log's head is refused with [ErrFenced], so of two writers one must stop.
package journal
