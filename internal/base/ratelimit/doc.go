// Package ratelimit holds what keeps a pace: token buckets.
//
// Invariants
//
//   - Nothing here looks at a clock, sleeps or starts a goroutine: the caller says what time it is, so that tests can.
//   - A bucket's zero value is full, and a time that goes backwards never fills it.
package ratelimit
