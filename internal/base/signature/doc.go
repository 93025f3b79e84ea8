// Package signature signs the requests that Leat sends to programs of its users (webhooks, agents behind a URL). docs/webhooks.md shows
// how receivers check the signatures.
//
//	Leat-Signature: t=1795194262,v1=5257a869…
//
// t is when the request was signed, in Unix seconds; v1 is the HMAC-SHA256 of t, a dot and the body's bytes, in hex.
//
// Invariants
//
//   - The time is signed with the body, so that a recorded request can't be replayed later.
//   - Receivers ignore unknown pairs in the header, and one valid v1 among several is enough for them. This allows rotating a secret
//     and introducing a v2.
package signature
