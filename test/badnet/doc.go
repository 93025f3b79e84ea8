// Package badnet simulates an unreliable network: a TCP proxy that closes, stalls and resets connections after a random number of bytes.
// Tests put it between a client and a gateway.
//
// [Listen] starts a proxy, which injects faults until their number is reached or Mend is called. Close ends it.
//
// Invariants
//
//   - Bytes are forwarded in order and unchanged. A fault only ends a connection.
//   - The fault of a connection depends only on the seed and the connection's number.
//   - After the last fault, the proxy forwards all connections completely.
package badnet
