// Package auth knows the tokens of end users: JSON Web Tokens that a team's own identity service signs.
//
// Invariants
//
//   - A key has one algorithm, which follows from what it is: a secret HS256, RSA RS256, P-256 ES256, Ed25519 EdDSA. A
//     token is checked with keys of its algorithm only, so that "none", and a public key taken for a secret, get nowhere.
//   - Of a token's header only alg and kid are looked at. A kid is compared with those of known keys and nothing else; a
//     header that demands more (crit) is refused. No URL and no key comes from a token.
//   - An expiry is needed. Issuer and audience are needed where they are configured.
//   - Keys change without a restart: files are read again when they change, a JWKS URL when its keys are old and, at a
//     bounded rate, when a token names an unknown key. While neither can be read the last good keys count.
//   - An error tells what is wrong with a token, never the token.
//   - The package starts no goroutine.
package auth
