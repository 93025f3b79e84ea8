// Package journal is the durable store of all conversations' logs: the types and the interface that its
// implementations share. [github.com/leat-dev/leat/internal/store/journal/journaltest] is their conformance suite.
//
// Invariants
//
//   - When Append returns nil, the batch is durable as configured; when it returns an error, nothing of it is there,
//     unless the error wraps [ErrUnknown]: then the writer must reopen the conversation and look.
//   - Events, key-values and summary of a batch are written in one transaction.
//   - The seqs of one log ascend without holes as written; compaction leaves holes.
//   - A batch whose Expected is not the log's head is refused with [ErrFenced], so that of two writers one gives up.
package journal
