package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	agents "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
	"github.com/leat-dev/leat/internal/server/compat"
	"github.com/leat-dev/leat/internal/server/eliza"
	keepfiles "github.com/leat-dev/leat/internal/server/files"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/server/usage"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

type serveCmd struct{ settings }

func (c *serveCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Config != "" {
		a.again = func() (config.Config, error) { return c.load(a) }
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return a.serve(cfg, signals)
}

// serveOnce runs a gateway until a signal, or until it is to be restarted with the configuration that is returned then. It is the
// one place where the rooms of the house are put together.
func (a *app) serveOnce(cfg config.Config, held *sockets, signals <-chan os.Signal) (next *config.Config, err error) {
	log, err := a.logger(cfg.Log)
	if err != nil {
		return nil, err
	}
	j, err := sqlite.Open(sqlite.Options{
		Dir: cfg.Data, Sync: sqlite.Sync(cfg.Sync), TraceRetention: time.Duration(cfg.TraceRetention), Logger: log.With("part", "journal"),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()

	metrics := newMetrics(cfg.Data)
	dialects := metrics.gateway.Dialects(a.dialects)
	kinds := agents.Kinds(dialects)
	all := gateway.NewRoster(log)
	defer all.Close()
	for _, s := range cfg.Agents {
		one, err := configured(&cfg, kinds, s, a.lookup)
		if err != nil {
			return nil, err
		}
		if err := all.Add(s.Name, one); err != nil {
			return nil, err
		}
	}
	more, err := openPlugins(&cfg, all, j, dialects, log.With("part", "plugins"))
	if err != nil {
		return nil, err
	}
	defer more.close()
	listeners, err := held.open(cfg.Listen)
	if err != nil {
		return nil, err
	}
	url, err := agentsURL(&cfg, listeners)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	hooks := webhook.New(webhook.Config{Hooks: cfg.Webhooks.Hooks(), Journal: j, Log: log.With("part", "webhook"), Metrics: metrics.webhook})
	tracer, flush, err := a.tracer(log.With("part", "tracing"))
	if err != nil {
		return nil, err
	}
	defer flush()
	signalling, err := newSignalling(a.ctx, &cfg, j, log.With("part", "signals"))
	if err != nil {
		return nil, err
	}
	defer signalling.close()
	kept, err := files.Open(filepath.Join(cfg.Data, "files"))
	if err != nil {
		return nil, err
	}
	coming, err := files.OpenUploads(filepath.Join(cfg.Data, "uploads"))
	if err != nil {
		return nil, err
	}
	workspace, closeWorkspace, err := openWorkspace(&cfg)
	if err != nil {
		return nil, err
	}
	defer closeWorkspace()
	set := settingsOf(&cfg)
	raw, err := openRaw(&cfg, log.With("part", "recording"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	gc := gateway.Config{
		Raw:   raw,
		Files: kept, MaxFile: int64(cfg.Limits.File), Uploads: coming, Workspace: workspace,
		Outboxes: []gateway.Outbox{hooks},
		Journal:  j, Dialects: dialects, Agents: all, DefaultAgent: cfg.DefaultAgent, Log: log.With("part", "gateway"), Metrics: metrics.gateway, Tracer: tracer, LogContent: cfg.Log.Content,
		Drain: set.Drain, Lease: set.Lease, WaitLimit: set.WaitLimit, TurnLimit: set.TurnLimit,
		MaxMessage: set.MaxMessage, MaxQueued: set.MaxQueued, HistoryMessages: set.HistoryMessages, HistoryBytes: set.HistoryBytes,
		URL:  url,
		User: cfg.Limits.User.Limits(), Tenant: cfg.Limits.Tenant.Limits(),
		Prices: set.Prices, UsageRetention: time.Duration(cfg.UsageRetention),
		Titles: true,
	}
	if gc.BasePath, err = cfg.Base(); err != nil {
		return nil, fmt.Errorf("%w: base_path: %w", config.ErrInvalid, err)
	}
	overlook(metrics.overview, cfg.DefaultAgent, all, more)
	signalling.watch(&gc, metrics.overview)
	more.watch(&gc)
	gw, err := gateway.New(gc)
	if err != nil {
		return nil, err
	}
	metrics.overview.Damaged = gw.Damaged
	known, err := users(cfg.Users, log.With("part", "users"))
	if err != nil {
		return nil, err
	}
	sessions, err := auth.OpenSessions(a.ctx, j)
	if err != nil {
		return nil, err
	}
	opt := server.Options{
		Token: cfg.Token, Hosts: cfg.Hosts, AllowedOrigins: cfg.AllowedOrigins, AppOrigins: cfg.AppOrigins, MaxConnections: cfg.Limits.Connections, Log: log.With("part", "server"), Metrics: metrics.server,
		Producer: gw.Producer, Users: known, Sessions: sessions,
	}
	if err := site(&cfg, &opt, opt.Log); err != nil {
		return nil, err
	}
	srv := server.New(opt)
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	live := signalling.register(&cfg, srv, gw)
	stopShell, err := shell(&cfg, srv, live, log.With("part", "terminal"))
	if err != nil {
		return nil, err
	}
	defer stopShell()
	more.register(srv, gw, live)
	compat.Register(srv, gw)
	if err := emotes(&cfg, srv, live); err != nil {
		return nil, err
	}
	gatherer, err := metrics.gatherer(gw)
	if err != nil {
		return nil, err
	}
	ops.Register(srv, gw, gatherer)
	ops.RegisterOverview(srv, metrics.overview)
	if err := ops.RegisterBackup(srv, j, cfg.Data); err != nil {
		return nil, err
	}
	usage.Register(srv, gw)
	keepfiles.Register(srv, gw)
	ui.Register(srv)
	all.Tell = signalling.tell
	defer hooks.Close() // what the gateway's last turns had to tell is on its way by then
	all.Start()
	defer more.stop() // what turns said until the end is delivered
	if err := hooks.Start(a.ctx, look(gw)); err != nil {
		return nil, err
	}
	data := keep(cfg, srv, gw, j, log)
	again := &reloader{
		load: a.again, next: make(chan config.Config, 1), agent: signalling.agent, kinds: kinds, lookup: a.lookup, roster: all, gw: gw, srv: srv, retention: data.retention, level: &a.level, pend: signalling.pend(live), log: log,
		begun: cfg, now: cfg,
	}
	ops.RegisterReload(srv, again.reload)
	signalling.restart = again.restart
	ready := func() error {
		signalling.agent.Ready()
		return resumed(a.ctx, metrics.overview, j, gw)
	}
	return a.live(cfg, gw, srv, data, again, more, ready, listeners, signals, log)
}

// live starts what was put together, and ends it in order. next is the configuration to restart with; nil if it is to end.
func (a *app) live(cfg config.Config, gw *gateway.Gateway, srv *server.Server, data keeping, again *reloader, more installed, ready func() error, listeners []net.Listener, signals <-chan os.Signal, log *slog.Logger) (next *config.Config, err error) {
	if err := gw.Start(a.ctx); err != nil {
		return nil, err
	}
	if err := ready(); err != nil {
		return nil, errors.Join(err, gw.Shutdown(a.ctx))
	}
	more.start(gw)
	stopData := data.start(a.ctx)
	defer stopData()
	serving, stopServing := context.WithCancel(a.ctx)
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, listeners...) }()
	a.greet(cfg, listeners)

	var failed error
	for serving := true; serving; {
		serving = false
		select {
		case s := <-signals:
			if again.takes(s) {
				_, _ = again.reload() // which has logged what is wrong
				serving = true
				continue
			}
			log.Info("stopping; again to stop at once", "signal", s.String())
		case failed = <-served:
			log.Error("serving ended", "error", failed)
			served <- nil
		case c := <-again.next:
			next = &c
			log.Info("restarting")
		case <-a.ctx.Done():
		}
	}
	stopData()
	again.agent.Leave()
	// Running turns go on while their readers can still follow them; then readers are told to come back.
	drain, now := context.WithCancel(a.ctx)
	defer now()
	down := make(chan error, 1)
	go func() { down <- gw.Shutdown(drain) }()
	for waiting := true; waiting; {
		select {
		case s := <-signals:
			if again.takes(s) {
				continue // it would be for nothing
			}
			log.Warn("stopping at once")
			next = nil
			now()
			stopServing()
		case err = <-down:
			waiting = false
		}
	}
	stopServing()
	return next, errors.Join(failed, err, <-served)
}

// greet says where the gateway is and what to do next.
func (a *app) greet(cfg config.Config, listeners []net.Listener) {
	var b strings.Builder
	names := make([]string, len(cfg.Agents))
	for i, s := range cfg.Agents {
		if names[i] = s.Name; s.Name == cfg.DefaultAgent {
			names[i] += " (default)"
		}
	}
	home := cfg.PublicURL
	for i, l := range listeners {
		at, isURL := reach(&cfg, l)
		if home == "" && isURL {
			home = at
		}
		if i == 0 {
			fmt.Fprintf(&b, "Leat %s listens on %s\n", version(), at)
		} else {
			fmt.Fprintf(&b, "  and on     %s\n", at)
		}
	}
	if home = strings.TrimSuffix(home, "/"); home != "" {
		fmt.Fprintf(&b, "  page       %s/\n  chat       leat chat --url %s\n", home, home)
	}
	fmt.Fprintf(&b, "  agents     %s\n  data       %s\n", strings.Join(names, ", "), cfg.Data)
	switch {
	case cfg.Open():
		b.WriteString("  token      none is set: whoever uses this machine may do everything, nobody else can connect\n")
	case cfg.Token == "":
		b.WriteString("  token      users come with theirs; no API token is set, so nobody is the admin\n")
	default:
		b.WriteString("  token      is set\n")
	}
	if note := platformNote(runtime.GOOS); note != "" {
		fmt.Fprintf(&b, "  note       %s\n", note)
	}
	_, _ = io.WriteString(a.out, b.String()) // nobody may be reading
}
