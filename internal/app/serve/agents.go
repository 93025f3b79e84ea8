package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
)

// agentsURL returns the URL under which agents reach the gateway: its public URL if there is one, else the first TCP
// address that it listens on, with a loopback address if it listens on all. If there are only Unix sockets, it
// returns just the path.
//
// Agents that push their turn later get this URL. An unspecified address such as 0.0.0.0 is not one to connect to, so
// agents on the same machine get 127.0.0.1 or ::1.
func agentsURL(cfg *config.Config, listeners []net.Listener) (string, error) {
	public, err := cfg.Public()
	if err != nil {
		return "", err
	}
	base, err := cfg.Base()
	if err != nil {
		return "", err
	}
	if public != nil {
		return public.Scheme + "://" + public.Host + base, nil
	}
	for _, l := range listeners {
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		if a.IP.IsUnspecified() {
			ip := net.IPv4(127, 0, 0, 1)
			if a.IP.To4() == nil {
				ip = net.IPv6loopback
			}
			a = &net.TCPAddr{IP: ip, Port: a.Port}
		}
		scheme := "http://"
		if cfg.TLS.On() {
			scheme = "https://"
		}
		return scheme + a.String() + base, nil
	}
	return base, nil
}

// newAgent makes one of the configured agents. It logs a warning for each option that has an old name. It is used at
// the start and by each reload, so both treat an agent alike. The secrets are those that captures and logs of the
// agent's bytes mask.
func newAgent(cfg *config.Config, kinds agent.Kinds, s agent.Spec, lookup func(string) (string, bool), log *slog.Logger) (gateway.Agent, error) {
	member, err := kinds.Make(s)
	if err != nil {
		return gateway.Agent{}, fmt.Errorf("%w: agents: %w", config.ErrInvalid, err)
	}
	for _, warning := range kinds.Warnings(s) {
		log.Warn(warning)
	}
	return gateway.Agent{
		Agent: member, Silence: cfg.SilenceOf(s), Kind: s.Kind, Description: s.Description, Suggestions: s.Suggestions, Secrets: Secrets(kinds, s, lookup),
		Discover: func(ctx context.Context) ([]agent.Offer, error) { return kinds.Discover(ctx, s) },
	}, nil
}
