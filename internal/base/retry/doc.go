// Package retry decides how long to wait before something is tried again, and waits.
//
// A [Schedule] is a value that computes the wait after a number of failures. A [Backoff] counts the failures of one connection or
// process: call Next after each failure and Reset after a success. If a response says how long to wait, [After] reads that; the caller
// decides how far to trust it. [Sleep] waits and ends early with its context.
//
// The package never decides to give up: limits on attempts and on the total time belong to the caller, because they depend on who waits.
//
// clients/go has a copy of this, because it imports no internal package.
package retry
