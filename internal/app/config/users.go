package config

import (
	"net/url"
)

// Users configures which tokens of end users are valid and what their claims mean. Users are enabled if one of Secret, SecretFile,
// KeyFile and JWKS is set.
type Users struct {
	Secret     string   `yaml:"secret"`
	SecretFile string   `yaml:"secret_file"`
	KeyFile    string   `yaml:"key_file"`
	JWKS       string   `yaml:"jwks"`
	Issuer     string   `yaml:"issuer"`
	Audience   []string `yaml:"audience"`
	// The names of claims.
	SubjectClaim string `yaml:"subject_claim"`
	TenantClaim  string `yaml:"tenant_claim"`
	ScopesClaim  string `yaml:"scopes_claim"`
	AdminScope   bool   `yaml:"admin_scope"`
}

// Enabled reports whether users can log in with tokens.
func (u *Users) Enabled() bool { return u.sources() > 0 }

// sources returns how many sources of keys are set. More than one is an error: it would be unclear which key signs
// the tokens.
func (u *Users) sources() (n int) {
	for _, s := range []string{u.Secret, u.SecretFile, u.KeyFile, u.JWKS} {
		if s != "" {
			n++
		}
	}
	return n
}

// check checks the sources of keys and the claims. A JWKS belongs to an identity service that signs tokens for many
// programs with the same keys, so it requires an issuer or an audience: a token for another program must not be valid
// here.
func (u *Users) check(bad reporter) {
	n := u.sources()
	switch {
	case n > 1:
		bad("users", "set only one of secret, secret_file, key_file and jwks; %d are set", n)
	case n == 0 && (u.Issuer != "" || len(u.Audience) > 0 || u.TenantClaim != "" || u.ScopesClaim != "" || u.AdminScope):
		bad("users", "tokens can't be verified without a key; set one of secret, secret_file, key_file and jwks")
	}
	if u.Secret != "" && len(u.Secret) < minSecret {
		bad("users.secret", "has %d bytes, at least %d are required; generate one with openssl rand -base64 48", len(u.Secret), minSecret)
	}
	if u.JWKS != "" {
		a, err := url.Parse(u.JWKS)
		switch {
		case err != nil || a.Host == "" || (a.Scheme != "https" && a.Scheme != "http"):
			bad("users.jwks", "invalid URL; write it as https://id.example.com/.well-known/jwks.json")
		case a.Scheme == "http" && !Loopback(a.Hostname()):
			bad("users.jwks", "use https; with http, an attacker on the network could replace the keys")
		}
		if u.Issuer == "" && len(u.Audience) == 0 {
			bad("users.jwks", "set users.audience or users.issuer, because an identity service signs tokens for other programs as well")
		}
	}
	if u.SubjectClaim == "" {
		bad("users.subject_claim", "must not be empty; the usual claim is sub")
	}
	if u.AdminScope && u.ScopesClaim == "" {
		bad("users.admin_scope", "set users.scopes_claim to the claim that contains the scopes")
	}
}

// minSecret is the minimum length of a secret in bytes. RFC 7518, section 3.2 requires it for HS256.
const minSecret = 32
