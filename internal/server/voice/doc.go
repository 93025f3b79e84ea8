// Package voice serves conversations by voice to users: GET /api/conversations/{id}/voice, a WebSocket with the frames of package wire.
// It also reads stored answers aloud: GET /api/conversations/{id}/messages/{message}/speech.
//
// Invariants
//
//   - A user hears what it may read, and no longer than that: a connection ends when its credentials expire or its access is revoked.
//   - Messages, stops and marks are decided by the gateway for the principal of the connection, as on every other surface.
package voice
