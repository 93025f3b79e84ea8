// Package journaltest is the conformance suite of journals. A new implementation passes [Run], and [RunDurable] where
// what it stores outlives it.
package journaltest
