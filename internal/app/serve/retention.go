package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/streams"
	surface "github.com/leat-dev/leat/internal/server/data"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/journal"
)

// collections list what the parts of a gateway store for a subject, apart from conversations. An export contains
// those that are not private, and a purge deletes the data of all. A part with a new kind of key about subjects must
// be added here, or a purge leaves its data behind.
func collections() []data.Collection {
	return []data.Collection{
		{Name: "usage", Prefix: usage.Prefix, Of: data.BySubject},
		{Name: "webhooks", Prefix: webhook.Prefix, Of: data.BySubject, Private: true}, // webhooks about its conversations that are not delivered yet
		{Name: "read", Prefix: gateway.PositionPrefix, Private: true, Of: func(kv journal.KeyValue, tenant, subject string) bool {
			return gateway.PositionOf(kv.Key, tenant, subject)
		}}, // its read positions
		{Name: "heard", Prefix: gateway.HeardPrefix, Private: true, Of: func(kv journal.KeyValue, tenant, subject string) bool {
			return gateway.HeardBy(kv.Key, tenant, subject)
		}}, // how far it has heard spoken answers
		{Name: "push", Prefix: webpush.Prefix, Of: data.BySubject, Private: true}, // browsers that are notified; their endpoints are secrets
		{Name: "turns", Prefix: "turn/", Of: data.BySubject, Private: true},       // for whom turns are queued
		{Name: "streams", Prefix: streams.Prefix, Of: data.BySubject},             // what they are; their data is deleted with them
		{Name: "subscriptions", Prefix: streams.SubscriptionPrefix, Of: data.BySubject},
		channel.Collection(),
	}
}

// dataJobs deletes expired data, and data that a purge requests, in three goroutines that run from start to stop.
type dataJobs struct {
	retention *data.Retention
	purger    *data.Purger
	streams   *streams.Store

	cancel context.CancelFunc // nil before start
	tasks  *sync.WaitGroup
}

// registerData creates the jobs that delete data and registers the routes of exports, imports, purges and legal
// holds.
func (a *App) registerData() dataJobs {
	log := a.log.With("part", "data")
	k := dataJobs{
		retention: data.NewRetention(a.gateway, a.journal, agesOf(&a.cfg), a.cfg.DefaultAgent, log),
		purger:    data.NewPurger(a.gateway, a.journal, a.files, a.streams, collections(), log),
		streams:   a.streams,
		tasks:     new(sync.WaitGroup),
	}
	surface.Register(a.server, a.gateway, surface.Options{
		Retention: k.retention, Purger: k.purger, Exporter: data.NewExporter(a.gateway, a.journal, collections()), Importer: data.NewImporter(a.gateway),
	})
	return k
}

// start runs all until stop is called. The gateway must have started.
func (k *dataJobs) start(ctx context.Context) {
	ctx, k.cancel = context.WithCancel(ctx)
	k.tasks.Go(func() { k.retention.Run(ctx) })
	k.tasks.Go(func() { k.purger.Run(ctx) })
	k.tasks.Go(func() { k.streams.Run(ctx) })
}

// stop returns when all have ended.
func (k *dataJobs) stop() {
	k.cancel()
	k.tasks.Wait()
}

// rawFolder is the folder of captured bytes in the data folder.
const rawFolder = "raw"

// openCapture opens the store of the bytes that turns exchange with their agents. If it is disabled, openCapture
// deletes what was captured before and returns nil, which is a valid store that captures nothing. An operator who
// disables the capture doesn't expect that texts of conversations remain in the folder.
func openCapture(cfg *config.Config, log *slog.Logger) (*capture.Log, error) {
	dir := filepath.Join(cfg.Data, rawFolder)
	if !cfg.Record.Enabled {
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("delete the recorded bytes: %w", err)
		}
		return nil, nil
	}
	return capture.Open(capture.Options{Dir: dir, Retention: time.Duration(cfg.Record.Retention), Size: int64(cfg.Record.Size), Log: log})
}

// Secrets returns the secrets of an agent's configuration: see [agent.Kinds.Secrets], and the environment variables
// that the agent's program gets (option env). Captures mask them. The variables may be harmless, but a program that
// gets one may print it.
func Secrets(kinds agent.Kinds, s agent.Spec, lookup func(string) (string, bool)) []string {
	secrets := kinds.Secrets(s)
	for _, name := range process.Names(s.Options["env"]) {
		if v, ok := lookup(name); ok {
			secrets = append(secrets, v)
		}
	}
	return secrets
}
