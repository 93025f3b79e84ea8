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
	// drain is what running turns get at a SIGTERM, and exitLimit how long the process may take beyond it.
	drain     = 2 * time.Second
	exitLimit = 30 * time.Second
	// pollReady is the pause between two looks at a process that starts, which gives no signal.
	pollReady = 20 * time.Millisecond
)

// program is the gateway, which is started again and again on the same folder and address.
type program struct {
	bin, addr, data string
	agent           string
	log             tail

	mu      sync.Mutex
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process is gone
	started time.Time
	count   int // of processes
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
	p.cmd, p.exited, p.started, p.count = cmd, exited, time.Now(), p.count+1
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

// end ends the process by a signal and waits until it is gone.
func (p *program) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%v: %w", sig, err)
	}
	select {
	case <-p.exited:
	case <-time.After(drain + exitLimit):
		_ = p.cmd.Process.Kill() // the error below says what matters
		<-p.exited
		return fmt.Errorf("the gateway did not end within %v of a %v", drain+exitLimit, sig)
	}
	if sig != syscall.SIGKILL && !p.cmd.ProcessState.Success() {
		return fmt.Errorf("the gateway ended badly after a %v: %s", sig, p.cmd.ProcessState)
	}
	return nil
}

// alive returns an error if the process has ended by itself.
func (p *program) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the gateway ended by itself: %s\n%s", p.cmd.ProcessState, p.log.String())
	default:
		return nil
	}
}

// tail keeps the end of what the program prints.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// maxTail bounds what is kept, in bytes.
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
