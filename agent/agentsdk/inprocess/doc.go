// Package inprocess is an agentsdk-go runtime in the gateway's own process as an agent. It is a module of its own, so that
// nobody who does not use it has the runtime among their dependencies.
//
// Invariants
//
//   - The runtime's events are drained to their end, also after the turn is over: else the runtime would hang, and never close.
//   - What they mean is said by the dialect agentsdk, the same as over HTTP.
//   - The runtime belongs to whoever made it: it is closed by them, after the gateway.
package inprocess
