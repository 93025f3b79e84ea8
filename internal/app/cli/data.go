package cli

import (
	"context"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/server"
	surface "github.com/leat-dev/leat/internal/server/data"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/store/journal"
)

// collections are what the parts of a gateway store of subjects beside conversations.
func collections() []data.Collection {
	return []data.Collection{
		{Name: "usage", Prefix: usage.Prefix, Of: data.BySubject},
		{Name: "webhooks", Prefix: webhook.Prefix, Of: data.BySubject, Private: true}, // what is still to be told of its conversations
		{Name: "read", Prefix: gateway.PositionPrefix, Private: true, Of: func(kv journal.KeyValue, tenant, subject string) bool {
			return gateway.PositionOf(kv.Key, tenant, subject)
		}}, // how far it has read
		{Name: "turns", Prefix: "turn/", Of: data.BySubject, Private: true}, // on whose behalf turns wait
	}
}

// keeping is what keeps and deletes data beside the gateway.
type keeping struct {
	retention *data.Retention
	purger    *data.Purger
}

// keep makes it and registers its routes.
func keep(cfg config.Config, srv *server.Server, gw *gateway.Gateway, j journal.Journal, log *slog.Logger) keeping {
	log = log.With("part", "data")
	k := keeping{
		retention: data.NewRetention(gw, j, agesOf(&cfg), cfg.DefaultAgent, log),
		purger:    data.NewPurger(gw, j, collections(), log),
	}
	surface.Register(srv, gw, surface.Options{
		Retention: k.retention, Purger: k.purger, Exporter: data.NewExporter(gw, j, collections()), Importer: data.NewImporter(gw),
	})
	return k
}

// start has it work until stop is called, which returns when it has stopped. The gateway has to have started.
func (k keeping) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { k.retention.Run(ctx) })
	all.Go(func() { k.purger.Run(ctx) })
	return func() { cancel(); all.Wait() }
}
