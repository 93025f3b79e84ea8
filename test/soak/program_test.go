package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	readyLimit = time.Minute
	// drain is the time that running turns get after a SIGTERM. The process must end within drain plus exitLimit.
	drain     = 2 * time.Second
	exitLimit = 30 * time.Second
	// pollReady is the interval of readiness checks. A starting process sends no signal, so it is polled.
	pollReady = 20 * time.Millisecond
)

// program is the gateway under test. It is restarted repeatedly with the same data folder and address.
type program struct {
	bin, addr, data string
	agent           string
	log             tail

	mu        sync.Mutex
	cmd       *exec.Cmd
	exited    chan struct{} // closed when the process has ended
	startedAt time.Time
	count     int // processes started so far
}

func (p *program) url() string { return "http://" + p.addr }

// start starts the gateway and waits until it is ready.
func (p *program) start(ctx context.Context) error {
	cmd := exec.Command(p.bin, "serve", "--listen", p.addr, "--data", p.data, "--agent", p.agent)
	cmd.Env = append(os.Environ(), "LEAT_CONFIG=", "LEAT_DRAIN="+drain.String(), "LEAT_LOG_LEVEL=warn", "LEAT_LOG_FORMAT=json")
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start gateway: %w", err)
	}
	exited := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.exited, p.startedAt, p.count = cmd, exited, time.Now(), p.count+1
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait() // its result is in cmd.ProcessState
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("the gateway ended before it was ready: %s\n%s", cmd.ProcessState, p.log.String())
		case <-ctx.Done():
			return fmt.Errorf("the gateway is not ready: %w", err)
		case <-time.After(pollReady):
		}
	}
}

func (p *program) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return errors.Join(err, res.Body.Close())
}

// end sends a signal and waits until the process has ended. A process that ignores the signal is killed, and the result is an error.
func (p *program) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%v: %w", sig, err)
	}
	select {
	case <-p.exited:
	case <-time.After(drain + exitLimit):
		_ = p.cmd.Process.Kill() // the error below is the cause
		<-p.exited
		return fmt.Errorf("the gateway did not end within %v of a %v", drain+exitLimit, sig)
	}
	if sig != syscall.SIGKILL && !p.cmd.ProcessState.Success() {
		return fmt.Errorf("the gateway ended with an error after a %v: %s", sig, p.cmd.ProcessState)
	}
	return nil
}

// checkRunning returns an error if the process has ended without a signal from the test.
func (p *program) checkRunning() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the gateway ended unexpectedly: %s\n%s", p.cmd.ProcessState, p.log.String())
	default:
		return nil
	}
}

// tail is a writer that retains only the last maxTail bytes of the program's output.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// maxTail is the number of retained bytes.
const maxTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - maxTail; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
