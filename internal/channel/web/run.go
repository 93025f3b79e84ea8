package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

const (
	// headerLimit is how long a client may take to send the header of a request, and idleLimit how long it may wait between two.
	headerLimit = 10 * time.Second
	idleLimit   = 2 * time.Minute
	// requestLimit is how long a request other than that for a socket may take: an upload over a slow mobile network.
	requestLimit = 5 * time.Minute
	// closeLimit is how long a shutdown waits for the responses that are being written, and for clients to close.
	closeLimit = 2 * time.Second
	// maxHeader is the size of the largest header of a request in bytes.
	maxHeader = 16 << 10
)

// service is the state of one call of Run. ctx ends when Run returns or is to return.
type service struct {
	ctx   context.Context
	inbox channel.Inbox
	// requests are those that are being answered, also by other servers.
	requests sync.WaitGroup
}

// Run implements [channel.Channel]. It listens, and answers the requests that other servers pass to ServeHTTP. When it returns, all
// connections are closed. It returns nil when ctx ends, and an error if it can't listen or the listener fails. The
// order of the end is: first no further request joins, then the connections get closeLimit to finish, and Run waits
// for all of them, also for those of other servers.
func (c *Channel) Run(ctx context.Context, inbox channel.Inbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := &service{ctx: ctx, inbox: inbox}
	var listener net.Listener
	if address := cmp.Or(c.options.Listen, DefaultListen); address != listenOff {
		var err error
		var config net.ListenConfig
		if listener, err = config.Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("web: %w", err)
		}
	}
	c.begin(run, listener)
	defer func() {
		c.end()
		cancel()
		run.requests.Wait()
	}()
	if listener == nil {
		<-ctx.Done()
		c.retire()
		return nil
	}
	server := &http.Server{
		Handler: c, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, ReadTimeout: requestLimit, WriteTimeout: requestLimit,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	serveErrors := make(chan error, 1)
	go func() { serveErrors <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
		c.retire()
	case err = <-serveErrors:
		return fmt.Errorf("web: %w", err)
	}
	c.end()
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer stop()
	if server.Shutdown(limit) != nil {
		_ = server.Close() // its only purpose is to end the connections
	}
	if err = <-serveErrors; errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// begin makes requests succeed, and Link return an address.
func (c *Channel) begin(run *service, listener net.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.service = run
	if listener != nil {
		c.address = listener.Addr().String()
	}
}

// end makes further requests fail.
func (c *Channel) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.service, c.address = nil, ""
}

// retire ends the deliveries for good. It may be called twice. Deliveries in progress return [channel.ErrStopped],
// and the pipeline repeats them with the next channel.
func (c *Channel) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isStopped() {
		close(c.stopped)
	}
}

// isStopped reports whether the context of Run has ended.
func (c *Channel) isStopped() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// join returns the current call of Run, which doesn't return before leave is called. It returns nil if the channel is
// not running. leave must be called exactly once.
func (c *Channel) join() (run *service, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service == nil {
		return nil, nil
	}
	c.service.requests.Add(1)
	return c.service, c.service.requests.Done
}

// refuseStopped answers a request while the channel doesn't run.
func refuseStopped(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	refuse(w, http.StatusServiceUnavailable, "the channel is not running")
}

// refuseRate answers a request beyond a limit. wait is sent in whole seconds, rounded up. If it is 0, the end isn't
// known, and the client is asked to wait a minute.
func refuseRate(w http.ResponseWriter, wait time.Duration) {
	if wait <= 0 {
		wait = time.Minute
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	refuse(w, http.StatusTooManyRequests, "too many requests; try again later")
}
