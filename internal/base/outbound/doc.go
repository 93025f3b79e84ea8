// Package outbound makes requests to addresses that a configuration or a user names, without becoming a way into the
// network that the gateway stands in.
//
// Invariants
//
//   - The address that is dialled is the one that is checked, after the name was resolved: a name that changes its mind
//     between a check and a connection (DNS rebinding) gains nothing.
//   - Only addresses of the public internet are dialled, unless private ones are allowed: no loopback, private,
//     link-local, shared, multicast, reserved or unspecified ones, in whatever form an IPv6 address wraps them.
//   - Redirects are not followed: a signed request is meant for the one who was named. They are answers like others.
//   - No proxy is taken from the environment; it would connect in the gateway's place, unchecked.
//   - What is read of an answer is bounded: its header, its body, its time.
package outbound
