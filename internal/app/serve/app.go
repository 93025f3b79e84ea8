package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/leat-dev/leat/agent"
	agents "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
	"github.com/leat-dev/leat/internal/server/eliza"
	fileserver "github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	noticeserver "github.com/leat-dev/leat/internal/server/notices"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/server/usage"
	"github.com/leat-dev/leat/internal/server/voice"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// Options are what an [App] is made of. All fields are needed, except Load and Tracing. Config must have passed
// [config.Config.Check], which also fills in the data folder.
type Options struct {
	Config config.Config
	// Load reads the configuration again for a reload or a restart. If it is nil, the configuration came from flags alone and neither
	// reads anything.
	Load     func() (config.Config, error)
	Dialects dialect.Registry
	// Getenv looks up environment variables.
	Getenv func(name string) (value string, ok bool)
	// Sockets are opened by New if they aren't open yet. The caller closes them when no other App follows.
	Sockets *Sockets
	Log     *slog.Logger
	// Level is the level of Log. A reload may change it.
	Level *slog.LevelVar
	// Tracing opens the tracer; nil traces nothing.
	Tracing Tracing
	// Version is the version of the program.
	Version string
}

// App is a gateway with everything around it. Its methods are called one after another, in the order New, Start,
// Wait, Close.
type App struct {
	cfg       config.Config
	log       *slog.Logger
	listeners []net.Listener

	journal  *sqlite.Journal
	dialects dialect.Registry
	kinds    agent.Kinds
	roster   *gateway.Roster
	plugins  installed
	voice    *wire.Service
	speech   voice.Speech
	detector *vad.Archive
	notes    channel.Voice
	channels *channel.Pipeline
	metrics  metrics
	hooks    *webhook.Hooks
	notices  *webpush.Service
	signals  *signalling
	gateway  *gateway.Gateway
	files    *attachments.Service
	captures *capture.Log
	pushes   *push.Service
	streams  *streams.Store
	server   *server.Server
	data     dataJobs
	reloader *reloader
	http     httpServer

	closers []func() error // called in reverse order
}

// New opens the data folder and the addresses, and puts the gateway together. Until Start no agent runs and no
// request is answered. Only one App at a time can use a data folder. Errors that the user can correct in the
// configuration are [config.ErrInvalid].
//
// The steps are in this order because each needs what the earlier ones opened: agents report to services, the URL
// that agents get depends on the sockets, and the surfaces serve the gateway. The data folder is locked first, so
// that a second gateway fails before it touches anything else.
func New(ctx context.Context, opt Options) (*App, error) {
	a := &App{cfg: opt.Config, log: opt.Log}
	for _, open := range []func(context.Context, Options) error{
		a.openJournal, a.openServices, a.openVoice, a.openAgents, a.openSockets, a.openGateway, a.openServer,
	} {
		if err := open(ctx, opt); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// onClose registers a function for Close. Functions are called in reverse order, so that each part is closed before
// the parts that it uses.
func (a *App) onClose(f func() error) { a.closers = append(a.closers, f) }

// Close releases everything that New opened and Start started, also if one of them failed halfway. It continues after
// an error and returns all of them joined. A second call has no effect.
func (a *App) Close() error {
	var errs []error
	for len(a.closers) > 0 {
		last := len(a.closers) - 1
		f := a.closers[last]
		a.closers = a.closers[:last]
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Listeners are the open addresses, in the order of the configuration.
func (a *App) Listeners() []net.Listener { return a.listeners }

// openJournal opens the store in the data folder. The lock of the folder lasts until the journal is closed, which is
// the last thing that Close does.
func (a *App) openJournal(context.Context, Options) (err error) {
	a.journal, err = sqlite.Open(sqlite.Options{
		Dir: a.cfg.Data, Sync: sqlite.Sync(a.cfg.Sync), TraceRetention: time.Duration(a.cfg.TraceRetention), Logger: a.log.With("part", "journal"),
	})
	if err != nil {
		return err
	}
	a.onClose(a.journal.Close)
	return nil
}

// openServices opens what the gateway and its agents report to: metrics, webhooks, notices to users, and signals. Webhooks and notices
// are delivered from Start on.
func (a *App) openServices(ctx context.Context, opt Options) (err error) {
	a.metrics = newMetrics(a.cfg.Data, opt.Version)
	a.hooks = webhook.New(webhook.Config{Hooks: a.cfg.Webhooks.Hooks(), Journal: a.journal, Log: a.log.With("part", "webhook"), Metrics: a.metrics.webhook})
	if a.notices, err = openNotices(ctx, &a.cfg, a.journal, a.log.With("part", "webpush")); err != nil {
		return err
	}
	a.signals, err = a.newSignalling(ctx)
	if err != nil {
		return err
	}
	a.onClose(func() error { a.signals.close(); return nil })
	return nil
}

// openAgents makes the configured agents and those of installed plugins. The decoders of all agents come from a
// registry that counts frames in the metrics. An agent that can't be made fails the start, because its name is in the
// configuration on purpose; a plugin that can't run is only logged.
func (a *App) openAgents(_ context.Context, opt Options) (err error) {
	a.dialects = a.metrics.gateway.Dialects(opt.Dialects)
	a.kinds = agents.Kinds(a.dialects)
	a.roster = gateway.NewRoster(a.log)
	a.roster.Tell = a.signals.tell
	a.onClose(func() error { a.roster.Close(); return nil })
	for _, s := range a.cfg.Agents {
		member, err := newAgent(&a.cfg, a.kinds, s, opt.Getenv, a.log)
		if err != nil {
			return err
		}
		if err := a.roster.Add(s.Name, member); err != nil {
			return err
		}
	}
	a.plugins, err = openPlugins(&a.cfg, a.roster, a.journal, a.dialects, a.reportPluginFailure, a.log.With("part", "plugins"))
	if err != nil {
		return err
	}
	a.onClose(func() error { a.plugins.close(); return nil })
	a.channels, err = openChannels(a.cfg.Channels, channel.Config{
		Journal: a.journal, Metrics: a.metrics.channel, Voice: a.notes, Log: a.log.With("part", "channels"), ReportFailure: a.reportFailure,
	}, a.voice)
	return err
}

// openSockets listens on the configured addresses. Connections wait in the backlog of the system until Start.
func (a *App) openSockets(_ context.Context, opt Options) (err error) {
	a.listeners, err = opt.Sockets.open(a.cfg.Listen)
	return err
}

// openGateway creates the gateway with everything that it reports to and reads from. The configuration of the gateway
// can't change later, so all watchers are added before gateway.New. Services that call the gateway, such as
// attachments and pushes, are completed after it.
func (a *App) openGateway(ctx context.Context, opt Options) error {
	limits := &a.cfg.Limits
	gc := gateway.Config{
		Journal: a.journal, Dialects: a.dialects, Agents: a.roster, DefaultAgent: a.cfg.DefaultAgent,
		Log: a.log.With("part", "gateway"), LogContent: a.cfg.Log.Content, Metrics: a.metrics.gateway, Settings: settingsOf(&a.cfg),
		Quotas: gateway.Quotas{User: limits.User.Limits(), Tenant: limits.Tenant.Limits()},
		Hooks:  gateway.Hooks{Outboxes: []gateway.Outbox{a.hooks}}, UsageRetention: time.Duration(a.cfg.UsageRetention), Titles: true,
	}
	url, err := agentsURL(&a.cfg, a.listeners)
	if err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	turns := push.NewTurns(push.Config{Journal: a.journal, Dialects: a.dialects, Log: gc.Log, Metrics: gc.Metrics, URL: url})
	gc.Pusher = turns
	if gc.Tracer, err = a.openTracer(ctx, opt); err != nil {
		return err
	}
	if a.captures, err = openCapture(&a.cfg, a.log.With("part", "recording")); err != nil {
		return err
	}
	a.onClose(a.captures.Close)
	gc.Raw = a.captures
	files, err := a.openFiles()
	if err != nil {
		return err
	}
	gc.Attachments = files
	a.signals.watch(&gc, a.metrics.overview)
	gc.Condition = a.metrics.overview.Condition
	a.plugins.watch(&gc)
	gc.Watchers = append(gc.Watchers, a.notices)
	watchChannels(a.channels, &gc)
	if a.gateway, err = gateway.New(gc); err != nil {
		return err
	}
	a.files = attachments.NewService(files, a.gateway)
	a.pushes = push.NewService(turns, a.gateway)
	a.streams = streams.New(a.gateway, a.journal, a.log.With("part", "streams"))
	overlook(a.metrics.overview, a.cfg.DefaultAgent, a.roster, a.plugins, a.channels, a.gateway)
	return nil
}

// openFiles opens the folders of attachments, of uploads in progress, and of the workspace that agents share.
func (a *App) openFiles() (*attachments.Store, error) {
	base, err := a.cfg.Base()
	if err != nil {
		return nil, fmt.Errorf("%w: base_path: %w", config.ErrInvalid, err)
	}
	store, err := files.Open(filepath.Join(a.cfg.Data, "files"))
	if err != nil {
		return nil, err
	}
	uploads, err := files.OpenUploads(filepath.Join(a.cfg.Data, "uploads"))
	if err != nil {
		return nil, err
	}
	c := attachments.Config{
		Journal: a.journal, Files: store, Uploads: uploads, MaxFile: int64(a.cfg.Limits.File), BasePath: base, Log: a.log.With("part", "files"),
	}
	if a.cfg.Files.Workspace != "" {
		if c.Workspace, err = files.OpenWorkspace(a.cfg.Files.Workspace); err != nil {
			return nil, fmt.Errorf("%w: files.workspace: %w", config.ErrInvalid, err)
		}
		a.onClose(c.Workspace.Close)
	}
	return attachments.NewStore(c), nil
}

// openServer makes the server with all surfaces. Every route is registered here, before the server accepts a
// connection. The reloader comes after the parts whose settings it changes.
func (a *App) openServer(ctx context.Context, opt Options) error {
	srv, err := a.newServer(ctx)
	if err != nil {
		return err
	}
	a.server = srv
	a.data = a.registerData()
	clients := hub.New(a.gateway)
	a.reloader = a.newReloader(opt, clients)
	a.signals.register(&a.cfg, srv, a.gateway, clients, a.reloader.restart)
	if err := a.openShell(clients); err != nil {
		return err
	}
	native.Register(srv, a.gateway)
	native.RegisterInspection(srv, inspection.New(a.gateway, inspection.Config{
		Journal: a.journal, Captures: a.captures, Dialects: a.dialects, Agents: a.roster, Metrics: a.metrics.gateway, Log: a.log.With("part", "gateway"),
	}))
	native.RegisterIngest(srv, a.gateway, a.pushes)
	voice.Register(srv, a.gateway, a.voice, a.detector != nil)
	voice.RegisterSpeech(srv, a.gateway, a.speech)
	eliza.Register(srv, a.gateway, eliza.Options{})
	a.plugins.register(srv, a.gateway, clients)
	a.registerChannels(srv)
	mountChats(srv, a.channels)
	a.registerOutputs(srv)
	usage.Register(srv, a.gateway)
	fileserver.Register(srv, a.files)
	a.notices.Show = showNotices(clients)
	noticeserver.Register(srv, a.notices)
	ui.Register(srv, a.detector)
	if err := emotes(&a.cfg, srv, clients); err != nil {
		return err
	}
	return a.registerOperations(srv)
}

// registerOutputs adds the outputs that are on.
func (a *App) registerOutputs(srv *server.Server) {
	opt := outputs.Options{ControlUI: a.cfg.Outputs.OpenClawUI}
	opt.DurableStreams.Wait = time.Duration(a.cfg.Outputs.DurableStreamsWait)
	if a.cfg.Outputs.DurableStreamsStore {
		opt.DurableStreams.Store = a.streams
	}
	for _, o := range outputs.List(opt) {
		if a.cfg.Outputs.IsOn(o.Name) {
			o.Register(srv, a.gateway)
		}
	}
}

// newServer makes the server without routes. Sessions of users are stored in the journal, so they outlast a restart.
func (a *App) newServer(ctx context.Context) (*server.Server, error) {
	verifier, err := users(a.cfg.Users, a.log.With("part", "users"))
	if err != nil {
		return nil, err
	}
	sessions, err := auth.OpenSessions(ctx, a.journal)
	if err != nil {
		return nil, err
	}
	opt := server.Options{
		Token: a.cfg.Token, Users: verifier, Sessions: sessions, Producer: a.pushes.TurnOf,
		Hosts: a.cfg.Hosts, AllowedOrigins: a.cfg.AllowedOrigins, AppOrigins: a.cfg.AppOrigins, MaxConnections: a.cfg.Limits.Connections,
		Log: a.log.With("part", "server"), Metrics: a.metrics.server,
	}
	if err := site(&a.cfg, &opt, opt.Log); err != nil {
		return nil, err
	}
	return server.New(opt), nil
}

// newReloader makes the reloader. The current configuration is both the one at the start and the live one.
func (a *App) newReloader(opt Options, clients *hub.Hub) *reloader {
	return &reloader{
		load: opt.Load, next: make(chan config.Config, 1), agent: a.signals.agent, kinds: a.kinds, getenv: opt.Getenv, roster: a.roster, gateway: a.gateway,
		channels: a.channels, voice: a.voice, server: a.server, retention: a.data.retention, level: opt.Level, pend: a.signals.pend(clients), log: a.log, startConfig: a.cfg, liveConfig: a.cfg,
	}
}

// registerOperations adds the routes of operators.
func (a *App) registerOperations(srv *server.Server) error {
	gatherer, err := a.metrics.gatherer(a.gateway)
	if err != nil {
		return err
	}
	ops.Register(srv, a.gateway, gatherer, a.channelSignals)
	ops.RegisterOverview(srv, a.metrics.overview)
	ops.RegisterReload(srv, a.reloader.reload)
	return ops.RegisterBackup(srv, a.journal, a.cfg.Data)
}
