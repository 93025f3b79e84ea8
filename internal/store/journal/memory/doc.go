// Package memory is a journal in memory, for tests and for gateways that don't keep conversations.
//
// Invariants
//
//   - It behaves like the journal on disk, and shares no memory with its callers, because logs are stored encoded.
//   - Only Delete, Trim and the expiry of keys free memory.
package memory
