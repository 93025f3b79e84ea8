//go:build unix

package killer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/binary"
)

// scratch is where the program is built; TestMain removes it.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "leat-killer"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leatBinary builds cmd/leat once.
var leatBinary = sync.OnceValues(func() (string, error) {
	return binary.Build(scratch)
})

func buildLeat(t testing.TB) string {
	t.Helper()
	path, err := leatBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program is a gateway that can be restarted on the same folder and address. Only one goroutine uses it.
type program struct {
	path string
	addr string
	data string
	args []string
	env  []string
	wrap []string // a command that runs the program, in the same process
	// socket is the listening socket that the program inherits from the test, as from systemd; nil if it opens its own.
	socket *os.File

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
	logs   lockedBuffer
}

// drainTime is the configured drain time of running turns after a SIGTERM.
const drainTime = 2 * time.Second

const (
	readyLimit = time.Minute
	// exitLimit is how long a stop may take beyond the drain time.
	exitLimit = 25 * time.Second
)

func newProgram(t testing.TB, data string, args ...string) *program {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{path: buildLeat(t), addr: l.Addr().String(), data: data, args: args, env: []string{
		"LEAT_DRAIN=" + drainTime.String(), "LEAT_LOG_FORMAT=json",
	}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd == nil {
			return
		}
		_ = p.cmd.Process.Kill() // it may be gone
		<-p.exited
	})
	return p
}

func (p *program) url() string { return "http://" + p.addr }

// launch starts the process without waiting for anything.
func (p *program) launch() error {
	args := slices.Concat(p.wrap, []string{p.path, "serve", "--listen", p.addr, "--data", p.data}, p.args)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.logs, &p.logs
	if p.socket != nil {
		p.cmd.ExtraFiles = []*os.File{p.socket}
		p.cmd.Env = append(p.cmd.Env, "LISTEN_FDS=1")
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start leat: %w", err)
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		_ = cmd.Wait() // its verdict is in cmd.ProcessState
		close(exited)
	}()
	return nil
}

// start starts the process and waits until it is ready.
func (p *program) start(ctx context.Context) error {
	if err := p.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	var last error
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		last = err
		select {
		case <-p.exited:
			return fmt.Errorf("leat exited before it was ready: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("leat is not ready: %w", last)
		case <-time.After(10 * time.Millisecond): // polls another process
		}
	}
}

// end sends a signal and waits for the exit, which must be the one that the signal causes.
func (p *program) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%v: %w", sig, err)
	}
	select {
	case <-p.exited:
	case <-time.After(drainTime + exitLimit):
		return fmt.Errorf("leat did not exit within %s of %v", drainTime+exitLimit, sig)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return fmt.Errorf("no wait status: %s", p.cmd.ProcessState)
	case sig == syscall.SIGKILL && (!status.Signaled() || status.Signal() != syscall.SIGKILL):
		return fmt.Errorf("leat exited before %v: %s", sig, p.cmd.ProcessState)
	case sig != syscall.SIGKILL && !p.cmd.ProcessState.Success():
		return fmt.Errorf("leat exited with an error after %v: %s", sig, p.cmd.ProcessState)
	}
	return nil
}

// inherit makes later starts inherit the test's socket. While no program runs, connections wait in its queue.
func (p *program) inherit(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.socket, err = l.(*net.TCPListener).File()
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.socket.Close() })
	p.wrap = []string{"sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh"}
}

// said returns the end of the program's output.
func (p *program) said() string {
	s := p.logs.String()
	return s[max(0, len(s)-16<<10):]
}

// lockedBuffer is written by the process's pipe and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
