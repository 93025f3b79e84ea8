package serve

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/server"
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
