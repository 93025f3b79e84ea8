// Package server is the base of the HTTP packages: routes, authentication, limits, errors and streams. Each protocol is a
// package below it that registers its routes here and calls the gateway.
//
// # Order of calls
//
// [New] creates a server, the protocol packages register their routes with [Server.Handle], and [Server.Serve] serves listeners
// until its context ends. Routes can't be added after that. [Server.Close] ends the streams early.
//
// Invariants
//
//   - A route declares who may call it. Registering a route without that panics, and [Server.Routes] lists all routes, so that a test
//     can call each.
//   - A request is checked in this order: Host (against DNS rebinding), Origin (against other sites' pages), principal, size. A handler
//     gets only requests that passed all checks.
//   - Without configured tokens every caller is the admin, so the server then accepts only connections to a loopback address.
//   - A principal is authenticated by the API token, by a user's token ([Users]) or by a cookie made from one of them. A stream or
//     session ends when those credentials expire. A socket can renew them for the same subject.
//   - If a request has a token, that token decides, whatever other credentials the request has. Wrong tokens are counted by address.
//   - Tokens are compared in constant time. Neither tokens nor queries appear in a log.
//   - Only [gateway.Decide], in the gateway, decides what a principal may do.
//   - Only [Describe] converts errors to a status and {"error":…,"reason":…}. The text of an internal error goes to the log and not to
//     the client.
//   - The server ends streams by their context, and clients can resume them. Ordinary requests may finish.
//
// [gateway.Decide]: github.com/leat-dev/leat/internal/gateway.Decide
package server
