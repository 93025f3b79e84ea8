package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leat-dev/leat/config"
	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/journal/sqlite"
	"github.com/leat-dev/leat/server"
	"github.com/leat-dev/leat/server/eliza"
	"github.com/leat-dev/leat/server/native"
	"github.com/leat-dev/leat/server/ops"
	"github.com/leat-dev/leat/server/ui"
)

type serveCmd struct{ settings }

func (c *serveCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return a.serve(cfg, signals)
}

// serve runs a gateway until a signal. It is the one place where the rooms of the house are put together.
func (a *app) serve(cfg config.Config, signals <-chan os.Signal) (err error) {
	log, err := a.logger(cfg.Log)
	if err != nil {
		return err
	}
	j, err := sqlite.Open(sqlite.Options{
		Dir: cfg.Data, Sync: sqlite.Sync(cfg.Sync), TraceRetention: time.Duration(cfg.TraceRetention), Logger: log.With("part", "journal"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()

	metrics, gatherer, err := collect()
	if err != nil {
		return err
	}
	all := make(map[string]gateway.Agent, len(cfg.Agents))
	for _, s := range cfg.Agents {
		one, err := a.kinds.Make(s)
		if err != nil {
			return fmt.Errorf("%w: agents: %w", config.ErrInvalid, err)
		}
		all[s.Name] = gateway.Agent{Agent: one, Silence: cfg.SilenceOf(s), Kind: s.Kind}
	}
	gw, err := gateway.New(gateway.Config{
		Journal: j, Dialects: a.dialects, Agents: all, DefaultAgent: cfg.DefaultAgent, Log: log.With("part", "gateway"), Metrics: metrics,
		Drain: time.Duration(cfg.Drain), Lease: time.Duration(cfg.Lease), WaitLimit: time.Duration(cfg.WaitLimit),
		MaxMessage: int(cfg.Limits.Message), MaxQueued: cfg.Limits.Queued, HistoryMessages: cfg.Limits.History,
	})
	if err != nil {
		return err
	}
	srv := server.New(server.Options{
		Token: cfg.Token, Hosts: cfg.Hosts, AllowedOrigins: cfg.AllowedOrigins, MaxConnections: cfg.Limits.Connections, Log: log.With("part", "server"),
	})
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	ops.Register(srv, gw, gatherer)
	if err := ops.RegisterBackup(srv, j, cfg.Data); err != nil {
		return err
	}
	ui.Register(srv)

	listeners, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	return a.live(cfg, gw, srv, listeners, signals, log)
}

// live starts what was put together, and ends it in order.
func (a *app) live(cfg config.Config, gw *gateway.Gateway, srv *server.Server, listeners []net.Listener, signals <-chan os.Signal, log *slog.Logger) error {
	if err := gw.Start(a.ctx); err != nil {
		return errors.Join(err, closeListeners(listeners))
	}
	serving, stopServing := context.WithCancel(a.ctx)
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving, listeners...) }()
	a.greet(cfg, listeners)

	var failed error
	select {
	case s := <-signals:
		log.Info("stopping; again to stop at once", "signal", s.String(), "drain", cfg.Drain.String())
	case failed = <-served:
		log.Error("serving ended", "err", failed)
		served <- nil
	case <-a.ctx.Done():
	}
	// Running turns go on while their readers can still follow them; then readers are told to come back.
	drain, now := context.WithCancel(a.ctx)
	defer now()
	down := make(chan error, 1)
	go func() { down <- gw.Shutdown(drain) }()
	var err error
	for waiting := true; waiting; {
		select {
		case <-signals:
			log.Warn("stopping at once")
			now()
			stopServing()
		case err = <-down:
			waiting = false
		}
	}
	stopServing()
	return errors.Join(failed, err, <-served)
}

func collect() (*gateway.Metrics, prometheus.Gatherer, error) {
	r := prometheus.NewRegistry()
	m := gateway.NewMetrics()
	err := errors.Join(m.Register(r), r.Register(collectors.NewGoCollector()), r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	return m, r, err
}

func listen(addresses []string) ([]net.Listener, error) {
	var all []net.Listener
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("listen on %s: another program is there already; choose another address with --listen", address)
			}
			return nil, errors.Join(err, closeListeners(all))
		}
		all = append(all, l)
	}
	return all, nil
}

func closeListeners(all []net.Listener) error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
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
	for i, l := range listeners {
		if i == 0 {
			fmt.Fprintf(&b, "Leat %s listens on http://%s\n", version(), l.Addr())
		} else {
			fmt.Fprintf(&b, "  and on     http://%s\n", l.Addr())
		}
	}
	fmt.Fprintf(&b, "  page       http://%s/\n  chat       leat chat --url http://%s\n", listeners[0].Addr(), listeners[0].Addr())
	fmt.Fprintf(&b, "  agents     %s\n  data       %s\n", strings.Join(names, ", "), cfg.Data)
	if cfg.Token == "" {
		b.WriteString("  token      none is set: whoever uses this machine may do everything, nobody else can connect\n")
	} else {
		b.WriteString("  token      is set\n")
	}
	_, _ = io.WriteString(a.out, b.String()) // nobody may be reading
}
