// The life of the app after New: start, serve requests, wait for the end, and shut down in order.

package serve

import (
	"context"
	"errors"
	"os"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/transcript"
)

// Start starts the agents, resumes what the last run left unfinished, and begins to answer requests.
//
// The order matters. Webhooks start before the gateway, whose recovery ends turns and so produces some. Plugins that
// are channels start after the gateway, since they send messages to it. The server is last: no request sees a gateway
// that is still recovering. If Start fails, the caller calls Close, which ends what has started.
func (a *App) Start(ctx context.Context) error {
	a.signals.start(a.metrics.overview, a.gateway)
	a.onClose(func() error { a.hooks.Close(); return nil }) // after the channels, whose last turns still have webhooks to send
	a.notices.Start()
	a.onClose(func() error { a.notices.Close(); return nil }) // after the last turns too
	a.roster.Start()
	a.onClose(func() error { a.plugins.stop(); return nil })
	if err := a.hooks.Start(ctx, webhookViewer(a.gateway)); err != nil {
		return err
	}
	if err := a.gateway.Start(ctx); err != nil {
		return err
	}
	a.signals.agent.Ready()
	if err := a.addResumedTurns(ctx); err != nil {
		return errors.Join(err, a.gateway.Shutdown(ctx))
	}
	a.plugins.start(a.gateway)
	if err := a.channels.Start(ctx, a.gateway, a.files); err != nil {
		return errors.Join(err, a.gateway.Shutdown(ctx))
	}
	a.data.start(ctx)
	a.http = a.startServing(ctx)
	return nil
}

// httpServer is the server while it answers requests.
type httpServer struct {
	stop   func()
	result chan error // has the server's error when it has stopped
}

// startServing runs the server in a goroutine until stop is called or the server fails. The goroutine always sends
// one result, and the channel has room for it, so the goroutine ends even if the result is not received.
func (a *App) startServing(ctx context.Context) httpServer {
	ctx, stop := context.WithCancel(ctx)
	s := httpServer{stop, make(chan error, 1)}
	go func() { s.result <- a.server.Serve(ctx, a.listeners...) }()
	return s
}

// Wait runs the gateway until the first signal, until the context is done, or until a restart is requested, and then shuts it down.
// SIGHUP reloads the configuration if there is one to reload. A second signal ends running turns at once. Wait returns the
// configuration to restart with, or nil if the program should end. It is called once, after Start.
func (a *App) Wait(ctx context.Context, signals <-chan os.Signal) (next *config.Config, err error) {
	next, failed := a.wait(ctx, signals)
	next, err = a.shutdown(ctx, signals, next)
	return next, errors.Join(failed, err)
}

// wait returns when the gateway has to shut down. failed is the error of a server that stopped by itself; the result
// is put back as nil, because shutdown waits for one.
func (a *App) wait(ctx context.Context, signals <-chan os.Signal) (next *config.Config, failed error) {
	for {
		select {
		case s := <-signals:
			if a.reloader.takes(s) {
				_, _ = a.reloader.reload() // it has logged its error
				continue
			}
			a.log.Info("stopping; send the signal again to stop at once", "signal", s.String())
		case failed = <-a.http.result:
			a.log.Error("the server stopped", "error", failed)
			a.http.result <- nil
		case c := <-a.reloader.next:
			next = &c
			a.log.Info("restarting")
		case <-ctx.Done():
		}
		return next, failed
	}
}

// shutdown ends the gateway in order. Turns that are running continue for a while, and their readers can follow them
// until they end; only then are readers disconnected.
//
// Deleting jobs stop first, since they would begin new work, and clients get the status "restarting" while their
// sockets are open. A signal during the drain interrupts the turns that are left and cancels a restart: the user
// wants the program to end.
func (a *App) shutdown(ctx context.Context, signals <-chan os.Signal, next *config.Config) (*config.Config, error) {
	a.data.stop()
	a.signals.agent.Leave()
	defer a.http.stop()
	drain, interrupt := context.WithCancel(ctx)
	defer interrupt()
	down := make(chan error, 1)
	go func() { down <- a.gateway.Shutdown(drain) }()
	for {
		select {
		case s := <-signals:
			if a.reloader.takes(s) {
				continue // a reload has no effect any more
			}
			a.log.Warn("stopping at once")
			next = nil
			interrupt()
			a.http.stop()
		case err := <-down:
			a.http.stop()
			return next, errors.Join(err, <-a.http.result)
		}
	}
}

// webhookViewer lets webhooks read the conversations that they report on, with the rights of the admin. A deleted
// conversation has nothing to read, which is not an error.
func webhookViewer(gw *gateway.Gateway) webhook.ReadTranscript {
	return func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error {
		err := gw.ViewTranscript(ctx, gateway.Principal{Admin: true}, conversation, fn)
		if errors.Is(err, gateway.ErrNotFound) {
			return nil
		}
		return err
	}
}
