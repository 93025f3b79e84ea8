// Package memory is a journal in memory: for tests, and for gateways whose conversations need not outlive them.
//
// Invariants
//
//   - It gives and refuses what the journal on disk does; nothing that it returns or was given is shared with it,
//     since logs lie encoded in it as they do on disk.
//   - It is bounded by nothing but Delete, Trim and the expiry of keys.
package memory
