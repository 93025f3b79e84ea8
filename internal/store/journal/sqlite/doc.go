// Package sqlite is the durable journal: one SQLite file in a folder that one process owns.
//
// Invariants
//
//   - One goroutine writes. It takes all that waits into one transaction, at once when idle, and answers after the commit;
//     with Sync full that is after the disk has it.
//   - A log is what lies settled up to its settled seq, and above it what lies live. Live rows at or below it, or at or
//     below what was trimmed, are garbage: every reader ignores them, whether they were deleted yet or not.
//   - Live rows lie in the order of arrival, without an index. Where a log's rows are is kept in memory, changed after the
//     commit and before the answer, and rebuilt from the rows when the journal is opened. A row number is never used twice;
//     a reader checks conversation and first seq all the same.
//   - A reader takes positions from memory first and then a snapshot of the file, so the snapshot is never older: what
//     has moved in between is at its new place, and nothing is missing.
//   - What a log holds beyond its rows (head, settled, trimmed, size) can be told from the file alone; nothing in memory is
//     needed to open it again after a crash.
//   - Text lies in the file only as it was sealed with the key of its conversation. A delete overwrites the key in its first
//     commit and the rows after it (secure_delete), and cuts the write-ahead log off before it returns; see secret for why
//     both are needed.
//   - Each sealed text is authenticated with its conversation and its place in it, and checked when it is read. What fails the
//     check is a [journal.DamageError], and its conversation is quarantined until it is deleted.
//   - Names of tenants and owners lie sealed in summaries; what the file is searched by are aliases of them.
//   - What a commit holds up is bounded: garbage is deleted for a millisecond at a time, checkpoints run beside the writer,
//     settling is prepared beside it. Only a log whose settled part is touched is rewritten whole, in one commit.
//
// SQL that changes the schema must go through migrations; the file of each version stays in testdata, made by
// go test -run TestVersions -update.
//
// Files in the folder: leat.db with leat.db-wal and leat.db-shm, leat.lock (who owns the folder; see also guard), ballast (a reserve that
// is given up for the ends of turns when the disk is full), and leat.db.vN.copy after a migration from version N, which
// the first Delete removes.
package sqlite
