// Package sqlite is the durable journal: one SQLite file in a data folder that one process owns.
//
// # Order of calls
//
// [Open] locks the folder, creates or migrates the file, and rebuilds the in-memory index from it. All methods of [Journal] may then be
// called from several goroutines until Close, which finishes the queued commits. [Restore] and [Verify] work on a folder that no
// gateway uses.
//
// # Files
//
//   - leat.db is the database. leat.db-wal (the write-ahead log) and leat.db-shm (its index) are in the same folder.
//   - leat.lock is locked while a process owns the folder. On Linux the database itself is locked too; see guard.
//   - ballast reserves disk space. It is released when the disk is full, so that turns can still be ended.
//   - leat.db.vN.copy is the file before a migration from version N. The first Delete removes it, because it holds deleted text.
//
// Table conversations has one row for each log: summary, head, settled, trimmed and terms. Table secrets has one key for each. Table
// live has the chunks of recent commits in the order of arrival, without an index. Table settled has the compacted chunks, by the seq
// of the last event. The remaining tables hold traces, key-values (kv), the ids of deleted conversations, and meta.
//
// # Commit path
//
// Append encodes its batch in the caller's goroutine and queues it. One goroutine, the writer, takes everything that is queued into one
// transaction and replies to the callers after the commit. Under load it waits half a millisecond for more batches before a commit; see
// pressure. The results of AppendAsync are passed to functions that the writer calls, so these must not wait for a commit. In the transaction, each log's events become one sealed row of live. The
// index changes after the commit and before the replies. If it is unknown whether a commit succeeded, the callers get
// [journal.ErrUnknown], and the writer reopens the file before the next commit.
//
// With sync full, a commit returns after the write-ahead log is on the disk. With sync normal only checkpoints sync: a crash of the
// process loses nothing, and a power cut may lose the newest commits. A separate connection runs checkpoints, which copy the
// write-ahead log to the main file about every 8 MiB.
//
// # Compaction
//
// Compact reads the live rows of a log and merges them on a reader's connection. The writer then stores the result and advances
// settled in one commit. If the log changed in between, the merge is repeated. A log whose compacted part changes is rewritten whole.
// Rows that are no longer needed are garbage. The writer deletes them in slices of about a millisecond.
//
// # Encryption
//
// All text is sealed with AES-GCM under the key of its conversation, and bound to its place in it. A delete overwrites the key in its
// first commit, then the rows (secure_delete), and truncates the write-ahead log before it returns; secret says why both are needed. The
// keys are in the same file, so this doesn't protect the file from a person who can read it. Tenants and owners are in indexes as
// hashes only (see alias), because an index leaves copies in free space.
//
// # Recovery
//
// Open scans live to rebuild the index. Everything else about a log (head, settled, trimmed, size) is in its own row, so no state is lost
// with the process. Each Open begins a new [journal.Term], because the newest commits may have been lost. The janitor finishes deletes that
// were interrupted. A text that fails authentication is a [journal.DamageError]. Its conversation is quarantined until it is deleted,
// and all others are served.
//
// # Invariants
//
//   - Only the writer changes the file and the index.
//   - A log is its compacted rows up to settled, and its live rows above it. Readers ignore live rows at or below settled or trimmed.
//   - A row number is never used twice. Readers check the conversation and the first seq of a row all the same.
//   - A reader takes positions from the index first and then a snapshot of the file. The snapshot is therefore never older than the index,
//     and a row that moved in between is found at its new place.
//   - No commit is delayed without limit: deletion of garbage is sliced, and checkpoints and merges run outside the writer. The
//     exception is the rewrite of a whole log.
//   - The schema changes only through migrations. The file of each version is in testdata, created by go test -run TestVersions -update.
package sqlite
