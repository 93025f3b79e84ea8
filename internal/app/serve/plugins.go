package serve

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	surface "github.com/leat-dev/leat/internal/server/plugins"
	"github.com/leat-dev/leat/internal/service/plugins"
)

// installed are the plugins of a gateway. Both fields are nil if plugins are disabled.
type installed struct {
	host  *host.Host
	store *plugins.Store
}

// openPlugins adds the agents among the installed plugins to the roster. A plugin that can't run is logged and does
// not prevent the start: it was installed through the API, and an operator must be able to start the gateway to
// remove it.
func openPlugins(
	cfg *config.Config, roster *gateway.Roster, store host.Journal, dialects dialect.Registry,
	report func(context.Context, host.Failure) error, log *slog.Logger,
) (installed, error) {
	if !cfg.Plugins.Enabled {
		return installed{}, nil
	}
	canonical, err := dialects.Lookup("leat")
	if err != nil {
		return installed{}, err
	}
	in := installed{host: host.New(host.Config{
		Roster: roster, Env: cfg.Plugins.Env, Dialect: canonical, Silence: cfg.SilenceOf(agent.Spec{}), Journal: store, Log: log,
		ReportFailure: report,
	})}
	in.store, err = plugins.Open(plugins.Config{Dir: filepath.Join(cfg.Data, "plugins"), Runtime: in.host, AllowPrivate: cfg.Plugins.AllowPrivate, Log: log})
	if err != nil {
		return installed{}, err
	}
	for _, p := range in.store.List() {
		if err := in.host.Resume(p); err != nil {
			log.Error("plugin not started", "plugin", p.Manifest.Name, "error", err)
		}
	}
	return in, nil
}

// watch subscribes the channels to committed events.
func (in installed) watch(cfg *gateway.Config) {
	if in.host != nil {
		cfg.Watchers = append(cfg.Watchers, in.host)
	}
}

// register adds the routes of plugins. They exist also if plugins are disabled, so that a client gets an error with this
// reason.
func (in installed) register(srv *server.Server, gw *gateway.Gateway, frames *hub.Hub) {
	opt := surface.Options{Store: in.store, Send: frames.Send}
	if in.host != nil {
		opt.State = in.host.State
	}
	surface.Register(srv, gw, opt)
}

// start starts the channels.
func (in installed) start(gw *gateway.Gateway) {
	if in.host != nil {
		in.host.Start(gw)
	}
}

// stop ends the channels. Messages that they have not delivered yet are delivered after the next start.
func (in installed) stop() {
	if in.host != nil {
		in.host.Close()
	}
}

// close closes the connections that the downloads of archives left open.
func (in installed) close() {
	if in.store != nil {
		in.store.Close()
	}
}
