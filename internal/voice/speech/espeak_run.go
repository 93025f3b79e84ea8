package speech

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/voice"
)

// run is one process of espeak-ng. Its goroutine ends when the process is gone.
type run struct {
	// output has the output that isn't read yet.
	output *buffer
	// cancel kills the process.
	cancel context.CancelFunc
	// exitDone is closed when the process and all goroutines of the run have ended.
	exitDone chan struct{}
}

// start starts the program as soon as a slot is free. The end of ctx kills it.
func (e *espeak) start(ctx context.Context, args []string, input string) (*run, error) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p, err := process.Start(process.Program{
		Path: e.path, Command: append([]string{"espeak-ng"}, args...), Env: process.Environment(nil),
	})
	if err != nil {
		<-e.slots
		return nil, &voice.Failure{Service: "speech", Engine: e.options.Engine, Reason: voice.Unavailable, Err: fmt.Errorf("start: %w", err)}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &run{output: newBuffer(maxBuffered), cancel: cancel, exitDone: make(chan struct{})}
	go func() {
		defer close(r.exitDone)
		r.output.finish(e.attend(ctx, p, r.output, input))
		cancel()
	}()
	return r, nil
}

// attend copies the output of a process until it has ended, and returns why. It is io.EOF for exit status 0.
func (e *espeak) attend(ctx context.Context, p *process.Process, output *buffer, input string) error {
	defer func() { <-e.slots }()
	stop := context.AfterFunc(ctx, func() {
		output.abort(context.Cause(ctx))
		p.Kill()
	})
	defer stop()
	aside := &process.Aside{Log: e.options.Log}
	var pipes sync.WaitGroup
	pipes.Go(func() { p.WriteInput([]byte(input)) })
	pipes.Go(func() { aside.ReadAll(p.Stderr) })
	_, copyErr := io.Copy(output, p.Stdout)
	if copyErr != nil { // the stream was closed
		p.Kill()
	}
	<-p.ExitDone()
	p.Close(pipes.Wait)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case p.Err() != nil:
		if last := aside.Last(); last != "" {
			return &voice.Failure{Service: "speech", Engine: e.options.Engine, Reason: voice.Rejected, Detail: last, Err: p.Err()}
		}
		return &voice.Failure{Service: "speech", Engine: e.options.Engine, Reason: voice.Interrupted, Err: p.Err()}
	case copyErr != nil:
		return copyErr
	}
	return io.EOF
}

// Read implements [io.Reader].
func (r *run) Read(p []byte) (int, error) { return r.output.Read(p) }

// Close implements [io.Closer]. It returns when the process is gone.
func (r *run) Close() error {
	r.output.abort(errClosed)
	r.cancel()
	<-r.exitDone
	return nil
}

var _ io.ReadCloser = (*run)(nil)
