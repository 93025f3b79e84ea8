// Package ops serves operators and machines: liveness, readiness, metrics, the status of agents, backups, configuration
// reloads, and a stream with which leat doctor tests the network path.
//
// Invariants
//
//   - /healthz answers as long as the process runs. /readyz fails while the gateway drains or commits fail, so that a load balancer sends
//     new requests elsewhere without ending running ones.
//   - /metrics requires the token or a loopback connection. Metrics contain neither ids nor texts.
package ops
