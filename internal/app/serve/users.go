package serve

import (
	"fmt"
	"log/slog"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
)

// users returns the verifier of users' tokens, or nil if users have none. Secrets and keys in files are read at once,
// so that a wrong path is an error of the configuration. Keys at a URL are fetched for the first token: the gateway
// starts without the identity service.
func users(c config.Users, log *slog.Logger) (server.Users, error) {
	if !c.Enabled() {
		return nil, nil
	}
	v, err := auth.New(auth.Config{
		Secret: c.Secret, SecretFile: c.SecretFile, KeyFile: c.KeyFile, JWKS: c.JWKS, Issuer: c.Issuer, Audience: c.Audience,
		Claims: auth.Claims{Subject: c.SubjectClaim, Tenant: c.TenantClaim, Scopes: c.ScopesClaim}, Admin: c.AdminScope,
		Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: users: %w", config.ErrInvalid, err)
	}
	return v, nil
}
