// Package ops is what machines ask of a running gateway: whether it lives, whether it can take work, and its metrics.
//
// Invariants
//
//   - /healthz answers as long as the process does; /readyz fails while the gateway drains or commits fail, so that a
//     load balancer sends new work elsewhere and does not end what runs.
//   - /metrics is for the token's holder and for this machine itself. Metrics carry no ids and no texts.
package ops
