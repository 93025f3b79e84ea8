// Package jsonrpc is one side of a JSON-RPC 2.0 connection whose messages are lines of JSON, as programs speak it over standard input and
// output. Both sides may send requests.
//
// # Invariants
//
//   - Requests and notifications of the peer are handled in their order. Work that takes time runs in separate goroutines, so that a
//     later message, such as one that cancels the work, isn't blocked.
//   - Each request gets exactly one response, unless the connection has ended or its work returned ErrNoResponse.
//   - The responses to a batch are sent as one batch. Batches are refused until AcceptBatches.
//   - A message is written whole, and messages of one goroutine are written in its order.
//   - Serve returns after the goroutines of all requests have ended, or after a limit if the peer doesn't read.
package jsonrpc
