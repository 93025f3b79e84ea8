// Package call has the code that agents with an HTTP upstream share: the client, requests, retries, and errors for viewers and operators.
//
// Invariants
//
//   - A call that fails before its stream begins is retried for at most 60 s. A later failure is never retried.
//   - Logs and errors contain no secrets and no queries of URLs.
//   - Redirects are not followed, since a request with credentials is meant for one address.
package call
