// Package ratelimit implements token buckets for limits such as "30 messages a minute".
//
// A [Rate] is the limit, a [Bucket] the state of one user or connection: call Take before each action, and Return if the action then
// didn't take place.
//
// Invariants
//
//   - The package doesn't read the clock, sleep or start goroutines. The caller passes the time, so that tests control it.
//   - The zero value of a bucket is full. A clock that is set back never adds tokens.
package ratelimit
