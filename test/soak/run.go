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

// Options say how long and how hard. All but Log are needed.
type Options struct {
	Binary  string // the gateway
	Data    string // its folder, which is empty
	Streams int
	Pace    time.Duration // between two words of an agent
	Seed    uint64

	Duration time.Duration
	// Storm says when the first restarts happen, SIGKILL and SIGTERM in turn, and Every how long processes run after them.
	Storm []time.Duration
	Every time.Duration
	// Warm and Stretch are those of [Flatness].
	Warm, Stretch time.Duration

	// Log takes progress, once a minute.
	Log func(format string, args ...any)
}

// Report is what a run came to.
type Report struct {
	Turns, Restarts int64
	Samples         []Sample
	Growth          []Growth
}

// sampleEvery is the time between two samples, and logEvery that between two lines of progress.
const (
	sampleEvery = 2 * time.Second
	logEvery    = time.Minute
	// maxMissed is how many samples in a row may fail before that is a fault.
	maxMissed = 10
)

// run is a run that is under way.
type run struct {
	opt       Options
	program   *program
	transport *http.Transport

	ended    atomic.Int64 // turns
	restarts atomic.Int64 // counted before the signal is sent
	steady   atomic.Bool  // no restart is under way
}

// Run runs the gateway and its users, for the duration or until the first fault, which is its error.
func Run(ctx context.Context, opt Options) (*Report, error) {
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
	defer func() { _ = r.program.end(syscall.SIGKILL) }() // it may be gone
	r.steady.Store(true)
	return r.all(ctx)
}

// all runs the streams, the restarts and the sampling side by side.
func (r *run) all(ctx context.Context) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Duration)
	defer cancel()
	var (
		tasks  sync.WaitGroup
		mu     sync.Mutex
		faults []error
		report Report
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
			cancel() // what fails from now on fails because of that
		})
	}
	for n := range r.opt.Streams {
		task(newStream(r, n).talk)
	}
	task(r.restart)
	task(func(ctx context.Context) error { return r.watch(ctx, &report) })
	tasks.Wait()
	report.Turns, report.Restarts = r.ended.Load(), r.restarts.Load()
	report.Growth = Flatness(report.Samples, r.opt.Warm, r.opt.Stretch)
	for _, g := range report.Growth {
		if !g.Flat {
			faults = append(faults, fmt.Errorf("it grows: %s", g))
		}
	}
	if len(faults) > 0 {
		faults = append(faults, fmt.Errorf("seed %d; the gateway printed at last:\n%s", r.opt.Seed, r.program.log.String()))
	}
	return &report, errors.Join(faults...)
}

// restart ends the gateway and starts it again, as the options say.
func (r *run) restart(ctx context.Context) error {
	begin := time.Now()
	at := append([]time.Duration(nil), r.opt.Storm...)
	for n := 0; ; n++ {
		if n == len(at) {
			next := time.Since(begin) + r.opt.Every
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
		if err := r.once(ctx, sig); err != nil {
			return err
		}
	}
}

func (r *run) once(ctx context.Context, sig syscall.Signal) error {
	if err := r.program.alive(); err != nil {
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

// watch takes samples.
func (r *run) watch(ctx context.Context, report *Report) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	begin, logged, missed := time.Now(), time.Now(), 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		s, err := r.program.sample(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			report.Samples, missed = append(report.Samples, s), 0
		case !r.steady.Load():
		default:
			if missed++; missed > maxMissed {
				return fmt.Errorf("the gateway can't be measured: %w", errors.Join(err, r.program.alive()))
			}
			continue
		}
		if time.Since(logged) >= logEvery {
			logged = time.Now()
			r.opt.Log("%4.0f min: %3d MB, %d goroutines, %d descriptors, log %d KB, %d turns", time.Since(begin).Minutes(),
				s.Memory>>20, s.Goroutines, s.Descriptors, s.WAL>>10, r.ended.Load())
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
