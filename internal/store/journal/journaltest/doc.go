// Package journaltest is the conformance suite of journals. An implementation must pass [Run], and [RunDurable] if its data
// outlives the process. [Writer] generates valid logs for the suite and for other tests of journals.
package journaltest
