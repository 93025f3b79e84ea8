// Package call holds what agents share that call somebody over HTTP: the client, what a call that failed is, when it is
// repeated, what of it readers are told.
//
// Invariants
//
//   - A call that failed before anything was said is repeated, for 60 s at most; after that it is not.
//   - Neither logs nor errors hold a secret or a URL's query.
//   - Redirects are not followed: what was sent to one address is not for another.
package call
