// Package inprocess runs an agentsdk-go runtime in the gateway's process as an agent, for programs that embed Leat. It is a separate
// module, so that Leat itself doesn't depend on the runtime.
//
// Invariants
//
//   - The runtime's events are read to the end, even after the turn is over. Otherwise the runtime would block on its channel and
//     never close.
//   - The events are decoded by the dialect agentsdk, as those of the HTTP server are.
//   - The program that made the runtime closes it, after the gateway.
package inprocess
