package serve

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
)

// site sets the options that say under which addresses the server is reached: the public URL, the path prefix, the
// proxies whose forwarding headers are believed, and TLS. The certificate is read again when its file changes.
func site(cfg *config.Config, opt *server.Options, log *slog.Logger) (err error) {
	if opt.PublicURL, err = cfg.Public(); err != nil {
		return fmt.Errorf("%w: public_url: %w", config.ErrInvalid, err)
	}
	if opt.BasePath, err = cfg.Base(); err != nil {
		return fmt.Errorf("%w: base_path: %w", config.ErrInvalid, err)
	}
	if opt.TrustedProxies, err = cfg.Proxies(); err != nil {
		return fmt.Errorf("%w: trusted_proxies: %w", config.ErrInvalid, err)
	}
	if cfg.TLS.On() {
		c, err := server.LoadCertificate(cfg.TLS.Cert, cfg.TLS.Key, log)
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		opt.TLS = c.Config()
	}
	return nil
}

// Address returns the address of a listener for people, and whether it is a URL. Sockets of systemd may be of either
// kind, so the listener decides, not the configuration.
func Address(cfg *config.Config, l net.Listener) (at string, isURL bool) {
	base, err := cfg.Base()
	switch {
	case err != nil || l.Addr().Network() == "unix":
		return config.UnixPrefix + l.Addr().String(), false
	case cfg.TLS.On():
		return "https://" + l.Addr().String() + base, true
	}
	return "http://" + l.Addr().String() + base, true
}

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
