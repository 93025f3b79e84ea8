// Package servertest has what tests of surfaces share: a network inside the process, on which virtual time works.
//
// Invariants
//
//   - Connections are [net.Pipe]s: unbuffered, so a client that does not read stalls the server at once, and durably
//     blocked for testing/synctest.
//   - The addresses look like loopback's.
package servertest
