// Package servertest provides an in-memory network for tests in virtual time.
//
// Invariants
//
//   - Connections are unbuffered [net.Pipe]s. A client that does not read blocks the server at once, durably for testing/synctest.
//   - The addresses look like those of the loopback.
package servertest
