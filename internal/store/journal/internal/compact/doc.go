// Package compact holds what every journal does to a log in the same way: how events lie in a chunk, what a settled
// stretch is made of, what is kept of a turn's history in time, and how a deleted conversation's records are blanked.
//
// Invariants
//
//   - A chunk is the JSON of events, one a line; a line end is never part of an event, since JSON escapes it.
//   - Settling keeps the fold: what is settled in stretches, or at once, folds to what the log as written folds to.
//   - The package is pure: no clock, no goroutine, no input or output.
package compact
