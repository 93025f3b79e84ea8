package serve

import (
	"log/slog"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/all"
	"github.com/leat-dev/leat/internal/gateway"
)

// openChannels makes the configured channels. They receive and deliver nothing before the gateway has started. A channel that can't be
// made fails the start, because its name is in the configuration on purpose.
func openChannels(cfg *config.Config, store channel.Journal, metrics *channel.Metrics, log *slog.Logger) (*channel.Pipeline, error) {
	p := channel.New(channel.Config{Journal: store, Metrics: metrics, Log: log})
	for _, s := range cfg.Channels {
		ch, o, err := all.New(s, log.With("channel", s.Name))
		if err != nil {
			return nil, err
		}
		p.Add(ch, o)
	}
	return p, nil
}

// watchChannels subscribes the channels to committed events, and lets them send the last answers of a gateway that shuts down. If the tracer
// can trace deliveries, it does.
func watchChannels(p *channel.Pipeline, cfg *gateway.Config) {
	if d, ok := cfg.Tracer.(channel.StreamDelegate); ok {
		p.Observe(d)
	}
	cfg.Watchers = append(cfg.Watchers, p)
	cfg.Drained = p.Shutdown
}
