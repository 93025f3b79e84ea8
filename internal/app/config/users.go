package config

import (
	"net/url"
)

// Users says which tokens of end users are good, and what their claims mean. Users have tokens where one of Secret,
// SecretFile, KeyFile and JWKS is given.
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

// Enabled reports whether users have tokens.
func (u *Users) Enabled() bool { return u.sources() > 0 }

// sources counts where keys are to come from.
func (u *Users) sources() (n int) {
	for _, s := range []string{u.Secret, u.SecretFile, u.KeyFile, u.JWKS} {
		if s != "" {
			n++
		}
	}
	return n
}

func (u *Users) check(bad func(key, format string, args ...any)) {
	n := u.sources()
	switch {
	case n > 1:
		bad("users", "keys come from one of secret, secret_file, key_file and jwks, not from %d of them", n)
	case n == 0 && (u.Issuer != "" || len(u.Audience) > 0 || u.TenantClaim != "" || u.ScopesClaim != "" || u.AdminScope):
		bad("users", "tokens can't be checked without a key: give one of secret, secret_file, key_file and jwks")
	}
	if u.Secret != "" && len(u.Secret) < minSecret {
		bad("users.secret", "it has %d bytes; at least %d are needed, such as openssl rand -base64 48 makes", len(u.Secret), minSecret)
	}
	if u.JWKS != "" {
		a, err := url.Parse(u.JWKS)
		switch {
		case err != nil || a.Host == "" || (a.Scheme != "https" && a.Scheme != "http"):
			bad("users.jwks", "it is no URL; write it as https://id.example.com/.well-known/jwks.json")
		case a.Scheme == "http" && !Loopback(a.Hostname()):
			bad("users.jwks", "over http whoever sits in between could put in keys of their own; use https")
		}
		if u.Issuer == "" && len(u.Audience) == 0 {
			bad("users.jwks", "an identity service signs tokens for other programs too: say by users.audience or users.issuer which are meant")
		}
	}
	if u.SubjectClaim == "" {
		bad("users.subject_claim", "the claim that names the user is needed; it is mostly sub")
	}
	if u.AdminScope && u.ScopesClaim == "" {
		bad("users.admin_scope", "say by users.scopes_claim in which claim the scopes are")
	}
}

// minSecret is how long a secret has to be, in bytes, for what it signs to be as safe as it looks.
const minSecret = 32
