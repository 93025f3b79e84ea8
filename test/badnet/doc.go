// Package badnet is a network that fails: a TCP proxy that drops, stalls and resets connections at random bytes. Tests put it
// between a client and a gateway.
//
// Invariants
//
//   - What passes is passed in order and unchanged; a fault ends a connection, and never alters what it carried before.
//   - The faults of a connection follow from the seed and the connection's number alone.
//   - After its last fault the proxy is an honest one.
package badnet
