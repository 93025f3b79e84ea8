// Package ops is what machines and operators ask of a running gateway: whether it lives and can take work, its metrics, how its agents
// are, a backup, that it load its configuration again, and a stream by which the doctor sees what lies between.
//
// Invariants
//
//   - /healthz answers as long as the process does; /readyz fails while the gateway drains or commits fail, so that a
//     load balancer sends new work elsewhere and does not end what runs.
//   - /metrics is for the token's holder and for this machine itself. Metrics carry no ids and no texts.
package ops
