// Package agentsdk is an agent behind the HTTP server of an agentsdk-go runtime: POST /v1/run/stream, answered with the
// runtime's events. The runtime itself remembers what was said, by a session; so it is sent the new message alone.
//
// Invariants
//
//   - One session runs one turn at a time: the runtime would take two, and mix their histories.
//   - A stream is read to its end, the runtime's last event or the end of the connection.
package agentsdk
