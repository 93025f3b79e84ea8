// Package signature signs the requests that Leat sends to programs of its users (webhooks, agents behind a URL), and
// checks such signatures.
//
//	Leat-Signature: t=1795194262,v1=5257a869…
//
// t is when the request was signed, in Unix seconds; v1 is the HMAC-SHA256 of t, a dot and the body's bytes, in hex.
//
// Invariants
//
//   - The time is signed with the body, so that a request that somebody recorded can't be sent again later.
//   - Signatures are compared in constant time, and before anything is believed that a request says.
//   - Pairs of the header that are not known are ignored, and one of several v1 is enough: so a secret can be changed, and
//     a v2 can come.
package signature
