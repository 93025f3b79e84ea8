// The command serve: it starts the app, and starts it again when a restart is asked for.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/serve"
	"github.com/leat-dev/leat/internal/store/journal"
)

// serveCmd runs the gateway. Package serve contains the gateway; this file handles signals, restarts and the
// greeting.
type serveCmd struct{ settings }

// Run loads the configuration and serves until a signal. The channel of signals has room for two, since the second
// signal means to stop at once and must not be lost while the first is handled. Without a configuration file there is
// nothing to reload: flags and the environment of a process don't change.
func (c *serveCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Config != "" {
		a.reload = func() (config.Config, error) { return c.load(a) }
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return a.serve(cfg, signals)
}

// serve runs a gateway until a signal ends it. If a restart is requested, the gateway ends as by a signal, and the
// next one starts with the current configuration in the same process. The sockets stay open in between, so that
// clients wait instead of being refused.
func (a *app) serve(cfg config.Config, signals <-chan os.Signal) (err error) {
	var sockets serve.Sockets
	defer func() { err = errors.Join(err, sockets.Close()) }()
	for {
		next, err := a.serveOnce(cfg, &sockets, signals)
		if next == nil || err != nil {
			// A gateway that failed to start or to end is not restarted: the error is for the operator or the service
			// manager to act on.
			return err // after an error, something may be left that the next gateway would fail on
		}
		cfg = *next
	}
}

// serveOnce runs one gateway. It returns the configuration to restart with, or nil if the program should end.
// Everything that the gateway opened is closed when serveOnce returns, also after an error, since the next gateway
// opens the same data folder.
func (a *app) serveOnce(cfg config.Config, sockets *serve.Sockets, signals <-chan os.Signal) (next *config.Config, err error) {
	log, err := a.logger(cfg.Log)
	if err != nil {
		return nil, err
	}
	gateway, err := serve.New(a.ctx, serve.Options{
		Config: cfg, Load: a.reload, Dialects: a.dialects, Getenv: a.lookup, Sockets: sockets, Log: log, Level: &a.level, Tracing: a.Tracing, Version: version(),
	})
	if errors.Is(err, journal.ErrLocked) {
		return nil, fmt.Errorf("%w; for a second gateway, use another address too: leat serve --data DIR --listen 127.0.0.1:PORT", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, gateway.Close()) }()
	if err := gateway.Start(a.ctx); err != nil {
		return nil, err
	}
	a.greet(cfg, gateway)
	return gateway.Wait(a.ctx, signals)
}

// greet prints the addresses of the gateway and what to do next. The text is for people, so it is written to standard
// output, not to the log. The address of the page is public_url if it is set, or else the first one that is a URL.
func (a *app) greet(cfg config.Config, gateway *serve.App) {
	var b strings.Builder
	names := make([]string, len(cfg.Agents))
	for i, s := range cfg.Agents {
		if names[i] = s.Name; s.Name == cfg.DefaultAgent {
			names[i] += " (default)"
		}
	}
	home := cfg.PublicURL
	for i, l := range gateway.Listeners() {
		at, isURL := serve.Address(&cfg, l)
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
	// An open gateway listens on loopback only, which the check of the configuration enforces.
	case cfg.Open():
		b.WriteString("  token      not set: every user of this machine may do everything, and only this machine can connect\n")
	case cfg.Token == "":
		b.WriteString("  token      users have their own; no API token is set, so there is no admin\n")
	default:
		b.WriteString("  token      is set\n")
	}
	if note := platformNote(runtime.GOOS); note != "" {
		fmt.Fprintf(&b, "  note       %s\n", note)
	}
	_, _ = io.WriteString(a.stdout, b.String()) // standard output may be closed
}

// Program is what a build of leat adds to the standard program. The zero value is leat itself.
type Program struct {
	// Tracing opens the tracer that serve uses; nil traces nothing.
	Tracing serve.Tracing
}

// Main executes the command line of the process and returns its exit status. The main function of a build calls only Main and
// os.Exit.
func (p Program) Main() int {
	a := &app{Program: p, ctx: context.Background(), in: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}
	return a.run(os.Args[1:])
}
