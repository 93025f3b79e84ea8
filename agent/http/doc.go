// Package http is an agent kind for programs behind a URL. For each turn it posts the input as JSON. The program responds with its stream,
// in any dialect, or with 202 and pushes the stream later. docs/agents.md describes the protocol for authors of such programs.
//
// Invariants
//
//   - The request has the turn's idempotency key and, if a secret is configured, a signature over time and body. Redirects are not followed,
//     since the signature is meant for one address.
//   - A request is retried for at most 60 s, and only while the stream has emitted nothing.
//   - A body that ends before the dialect's end of the turn fails the turn.
//   - If the turn ends before its stream, the request is canceled, and the stop URL, if configured, is called.
//   - Logs and errors contain neither the secret, nor the query of a URL, nor the token of a turn.
package http
