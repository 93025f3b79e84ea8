// Package http is an agent behind a URL: Leat sends it what there is to answer, and it answers with its stream, in any
// dialect, or with 202 and pushes the stream later. docs/agents.md describes it for those who write one.
//
// Invariants
//
//   - The request carries the turn's idempotency key and, where there is a secret, a signature over time and body.
//     Redirects are not followed: what was signed for one address is not for another.
//   - A call that failed before anything was said is repeated, for 60 s at most; after that it is not.
//   - A body that ends without the dialect's own end fails the turn.
//   - When the turn ends before its stream does, the request is cancelled, and the stop URL, where there is one, is told.
//   - Neither logs nor errors hold the secret, a URL's query, or the token of a turn.
package http
