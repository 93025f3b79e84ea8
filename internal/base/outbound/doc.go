// Package outbound sends requests to addresses from a configuration or a user, without giving access to the gateway's own network.
//
// Invariants
//
//   - The address that is dialed is the one that was checked, after name resolution. A name that resolves differently the second
//     time (DNS rebinding) gains nothing.
//   - Unless private addresses are allowed, only addresses of the public internet are dialed: no loopback, private, link-local,
//     shared, multicast, reserved or unspecified ones, in any form that an IPv6 address can embed them.
//   - Redirects are not followed, because a signed request is meant for the named receiver only. The redirect is returned as the
//     response.
//   - Proxies from the environment are ignored, because a proxy would connect without the check.
//   - The header, the body and the time of a response are limited.
package outbound
