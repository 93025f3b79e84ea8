// Package server is the root of the HTTP surfaces: routes, who asks, limits, errors and streams. Each surface is a
// package beside it that registers its routes here and sees the gateway.
//
// Invariants
//
//   - A route says who may call it. One that nobody decided on panics when it is registered, and [Server.Routes] lists
//     all of them, so that a test can walk them.
//   - A request is looked at in this order: Host (against DNS rebinding), Origin (against foreign pages), principal,
//     size; a handler sees only what has passed.
//   - Without a token everybody is the admin; so then only connections to a loopback address are answered.
//   - Who asks is proven by the API token, a user's own ([Users]) or a cookie made of one of them, for no longer than that is
//     good: a stream ends with its proof, and so does a session; a socket may renew it for the same subject.
//   - A token that was presented decides; no other proof mends a wrong one. Wrong ones are counted by address.
//   - Tokens are compared in constant time and appear in no log, and neither do queries.
//   - What a principal may do is decided by [gateway.Decide] alone, in the gateway.
//   - An error becomes a status and {"error":…,"reason":…} in one place, [Describe]; the text of an internal one goes to the
//     log, not to the client.
//   - The server closes streams by their context, and they can be resumed; ordinary requests are let finish.
//
// [gateway.Decide]: github.com/leat-dev/leat/gateway.Decide
package server
