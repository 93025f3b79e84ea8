// Package agentsdk is an agent kind for the HTTP server of an agentsdk-go runtime. It posts each message to /v1/run/stream, and the response
// is a stream of the runtime's events. The runtime stores the history in a session, so the request has only the new message.
//
// Invariants
//
//   - A session runs one turn at a time; others wait. The runtime would accept two requests and mix their histories.
//   - A stream is read to the runtime's last event. If the connection ends before it, the turn fails as cut short.
package agentsdk
