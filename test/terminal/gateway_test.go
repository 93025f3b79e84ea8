//go:build linux

package terminal

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// leat is the path of the program.
var leat string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "leat-terminal-")
		if err == nil {
			defer os.RemoveAll(dir)
			leat, err = build(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build builds the program. It belongs to another module than this package.
func build(dir string) (path string, err error) {
	path = filepath.Join(dir, "leat")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/leat")
	cmd.Dir = filepath.Join("..", "..")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leat: %w\n%s", err, output)
	}
	return path, nil
}

// gateway is a gateway in a separate process, which a test can kill and start again at the same address.
type gateway struct {
	t         *testing.T
	addr, dir string
	args      []string
	cmd       *exec.Cmd
	logs      *bytes.Buffer
	exited    chan struct{}
}

// serve starts a gateway with agents.
func serve(t *testing.T, args ...string) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, addr: l.Addr().String(), dir: t.TempDir(), args: args}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	g.start()
	t.Cleanup(g.kill)
	return g
}

func (g *gateway) url() string { return "http://" + g.addr }

// start runs the gateway and waits until it is ready.
func (g *gateway) start() {
	g.t.Helper()
	g.cmd = exec.Command(leat, append([]string{"serve", "--listen", g.addr, "--data", filepath.Join(g.dir, "data")}, g.args...)...)
	g.logs, g.exited = &bytes.Buffer{}, make(chan struct{})
	g.cmd.Stderr = g.logs
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // it is killed
		close(exited)
	}(g.cmd, g.exited)
	ctx, cancel := context.WithTimeout(g.t.Context(), waitLimit)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url()+"/readyz", nil)
		if err != nil {
			g.t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			g.t.Fatal("the gateway does not start")
		case <-g.exited:
			g.t.Fatalf("the gateway has ended: %s", g.logs)
		case <-time.After(5 * time.Millisecond): // polled, because the start of another process can't be awaited
		}
	}
}

// kill ends the gateway at once, as a crash would.
func (g *gateway) kill() {
	_ = g.cmd.Process.Kill() // it may have ended
	<-g.exited
}
