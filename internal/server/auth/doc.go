// Package auth verifies the tokens of end users: JSON Web Tokens that a team's identity service signs.
//
// [New] creates the verifier and reads its files. [OpenSessions] opens the store for session cookies. Both are options of the
// server.
//
// Invariants
//
//   - A key has one algorithm, determined by its type: a secret HS256, RSA RS256, P-256 ES256, Ed25519 EdDSA. A token is checked only
//     with keys of its algorithm, so neither "none" nor a public key used as a secret is accepted.
//   - Only alg and kid of a token's header are used. A kid is only compared with those of known keys. A header with crit is refused. No
//     URL and no key is taken from a token.
//   - An expiry is required. Issuer and audience are required if they are configured.
//   - Keys change without a restart: files are read again when they change, and a JWKS URL when its keys are old or, at a limited
//     rate, when a token names an unknown key. While neither is readable, the last valid keys apply.
//   - An error describes the fault of a token and never contains the token.
//   - The package starts no goroutine.
package auth
