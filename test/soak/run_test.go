package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// options configure a run. All fields are required.
type options struct {
	Binary  string // path of the gateway's program
	Data    string // the gateway's data folder, empty at the start
	Streams int
	Pace    time.Duration // pause between two words of an agent
	Seed    uint64        // of all random choices

	Duration time.Duration
	// Storm lists the times of the first restarts since the start of the run. Interval is the lifetime of each later process. SIGKILL and
	// SIGTERM alternate.
	Storm    []time.Duration
	Interval time.Duration
	// Warm and Stretch are the arguments of [flatness].
	Warm, Stretch time.Duration

	// Log receives a progress line about once a minute.
	Log func(format string, args ...any)
}

// report is the result of a run.
type report struct {
	Turns, Restarts int64
	Samples         []sample
	growth          []growth
}

const (
	sampleInterval = 2 * time.Second
	logInterval    = time.Minute // between progress lines
	// maxMissed is the number of consecutive failed samples that is accepted. Restarts don't count.
	maxMissed = 10
)

// run is the state of a run in progress.
type run struct {
	opt       options
	program   *program
	transport *http.Transport

	turns    atomic.Int64 // turns that have ended
	restarts atomic.Int64 // incremented before the signal is sent, so a turn that the signal interrupts sees the new count
	steady   atomic.Bool  // no restart is in progress
}

// runSoak runs the gateway and its users for the duration, or until the first fault. It returns the faults as its error, and a report
// unless the gateway could not be started.
func runSoak(ctx context.Context, opt options) (*report, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	agent := httptest.NewServer(upstream{pace: opt.Pace})
	defer agent.Close()
	r := &run{
		opt:       opt,
		program:   &program{bin: opt.Binary, addr: addr, data: opt.Data, agent: "http:" + agent.URL},
		transport: &http.Transport{MaxIdleConnsPerHost: opt.Streams},
	}
	defer r.transport.CloseIdleConnections()
	if err := r.program.start(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = r.program.end(syscall.SIGKILL) }() // it may have ended already
	r.steady.Store(true)
	return r.runTasks(ctx)
}

// runTasks runs the streams, the restarts and the sampling concurrently, and collects their faults.
func (r *run) runTasks(ctx context.Context) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Duration)
	defer cancel()
	var (
		tasks  sync.WaitGroup
		mu     sync.Mutex
		faults []error
		report report
	)
	task := func(do func(context.Context) error) {
		tasks.Go(func() {
			err := do(ctx)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, err)
			cancel() // later errors are consequences of this one
		})
	}
	for n := range r.opt.Streams {
		task(newStream(r, n).runConversations)
	}
	task(r.restart)
	task(func(ctx context.Context) error { return r.watch(ctx, &report) })
	tasks.Wait()
	report.Turns, report.Restarts = r.turns.Load(), r.restarts.Load()
	report.growth = flatness(report.Samples, r.opt.Warm, r.opt.Stretch)
	for _, g := range report.growth {
		if !g.Flat {
			faults = append(faults, fmt.Errorf("a resource grows: %s", g))
		}
	}
	if len(faults) > 0 {
		faults = append(faults, fmt.Errorf("seed %d; last output of the gateway:\n%s", r.opt.Seed, r.program.log.String()))
	}
	return &report, errors.Join(faults...)
}

// restart restarts the gateway at the times of Storm and then at each Interval, until the remaining time is too short to measure another
// process.
func (r *run) restart(ctx context.Context) error {
	begin := time.Now()
	at := append([]time.Duration(nil), r.opt.Storm...)
	for n := 0; ; n++ {
		if n == len(at) {
			next := time.Since(begin) + r.opt.Interval
			if r.opt.Duration-next < r.opt.Warm+2*r.opt.Stretch {
				return nil // the process would end before it could be measured
			}
			at = append(at, next)
		}
		select {
		case <-time.After(time.Until(begin.Add(at[n]))):
		case <-ctx.Done():
			return nil
		}
		sig := syscall.SIGKILL
		if n%2 == 1 {
			sig = syscall.SIGTERM
		}
		if err := r.restartOnce(ctx, sig); err != nil {
			return err
		}
	}
}

// restartOnce ends the process with a signal and starts the next one.
func (r *run) restartOnce(ctx context.Context, sig syscall.Signal) error {
	if err := r.program.checkRunning(); err != nil {
		return err
	}
	r.steady.Store(false)
	r.restarts.Add(1)
	if err := r.program.end(sig); err != nil {
		return err
	}
	if err := r.program.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.steady.Store(true)
	r.opt.Log("restarted after a %v", sig)
	return nil
}

// watch samples the process at intervals and logs the progress. Failed samples during a restart are ignored.
func (r *run) watch(ctx context.Context, report *report) error {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	begin, logged, failures := time.Now(), time.Now(), 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		s, err := r.program.measure(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			report.Samples, failures = append(report.Samples, s), 0
		case !r.steady.Load():
		default:
			if failures++; failures > maxMissed {
				return fmt.Errorf("the gateway can't be measured: %w", errors.Join(err, r.program.checkRunning()))
			}
			continue
		}
		if time.Since(logged) >= logInterval {
			logged = time.Now()
			r.opt.Log("%4.0f min: %3d MB, %d goroutines, %d descriptors, log %d KB, %d turns", time.Since(begin).Minutes(),
				s.Memory>>20, s.Goroutines, s.Descriptors, s.WAL>>10, r.turns.Load())
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
