// Package memory implements a journal in memory, for tests and for gateways that don't store conversations.
//
// It passes the same conformance suite as the journal on disk. Nothing survives the process: an acknowledged Append is only as
// durable as the process itself.
//
// # Invariants
//
//   - It shares no memory with its callers: logs are stored encoded, and keys and summaries are copied in both directions.
//   - Only Delete, Trim and the expiry of keys and traces free memory.
//   - A blob is never changed after it is stored, because readers decode it without the lock. Blank replaces it.
package memory
