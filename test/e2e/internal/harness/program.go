//go:build e2e

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/binary"
)

// StartLimit is how long a program may take to become ready. The slowest takes 13 s on an idle machine.
const StartLimit = 3 * time.Minute

// Program is a process that a test can kill and start again. Its methods must not be called concurrently.
type Program struct {
	Name  string
	Args  []string
	Dir   string
	Env   []string
	URL   string
	Ready string // path below URL that answers with a status below 500 once the program is ready

	cmd    *exec.Cmd
	exited chan struct{}
	logs   logs
}

// logs collects the output of a program over all of its starts.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) last() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(tail(l.b.Bytes()))
}

// CloseWithTest kills the program when the test ends. If the test failed, it logs the end of the program's output. If LEAT_LOGS
// is set as well, it writes the whole output to that folder, and for Leat a copy of the data folder with the recordings of all
// turns.
func (p *Program) CloseWithTest(t *testing.T) *Program {
	t.Cleanup(func() {
		p.Signal(syscall.SIGKILL)
		if !t.Failed() {
			return
		}
		t.Logf("the end of the output of %s:\n%s", p.Name, p.logs.last())
		if dir := os.Getenv("LEAT_LOGS"); dir != "" {
			name := filepath.Join(dir, strings.ReplaceAll(p.Name, " ", "-")+".log")
			if err := os.WriteFile(name, p.logs.b.Bytes(), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.CopyFS(strings.TrimSuffix(name, ".log")+".data", os.DirFS(filepath.Join(p.Dir, "data"))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	return p
}

// Start starts the program and waits until it is ready.
func (p *Program) Start(t *testing.T) {
	t.Helper()
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (p *Program) start(ctx context.Context) error {
	p.cmd = exec.Command(p.Args[0], p.Args[1:]...)
	p.cmd.Dir, p.cmd.Env = p.Dir, p.Env
	p.cmd.Stdout, p.cmd.Stderr = &p.logs, &p.logs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		_ = cmd.Wait() // the error says how the process ended, which the tests decide themselves
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+p.Ready, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode < 500 {
				return nil
			}
		}
		select {
		case <-exited:
			return fmt.Errorf("%s exited before it was ready:\n%s", p.Name, p.logs.last())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v:\n%s", p.Name, StartLimit, p.logs.last())
		case <-time.After(100 * time.Millisecond): // a process doesn't announce that it is ready
		}
	}
}

// Signal sends a signal that ends the program to it and its children, and waits until it has exited.
func (p *Program) Signal(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // fails only if the process has exited already
	<-p.exited
	p.cmd = nil
}

// FreePort returns a port on loopback that was free a moment ago.
func FreePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Leat builds the gateway and returns it without starting it. It has a port and a data folder that no other program uses, and
// only the environment variables in env.
func Leat(t *testing.T, env []string, args ...string) *Program {
	t.Helper()
	dir, port := t.TempDir(), FreePort(t)
	p := &Program{
		Name: "Leat", Args: append([]string{binary.Leat(t), "serve", "--listen", "127.0.0.1:" + port, "--data", filepath.Join(dir, "data"), "--log-level", "debug"}, args...),
		Dir: dir, URL: "http://127.0.0.1:" + port, Ready: "/readyz",
		Env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LEAT_LOG_FORMAT=json"}, env...),
	}
	return p.CloseWithTest(t)
}
