package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// binary is the program under test. It is built from this tree at the first start.
type binary struct {
	dir     string // folder of the built program
	profile string // folder for CPU profiles, or empty for none

	once sync.Once
	path string
	err  error
}

// hook is a source file that is compiled into the measured program only. It serves CPU profiles and exact memory figures on a
// separate port. It costs nothing during a measurement, because it is called only before and after, unless a profile was requested.
const hook = `package main

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
)

func init() {
	addr := os.Getenv("LEAT_BENCH_DEBUG")
	if addr == "" {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/memory", func(w http.ResponseWriter, r *http.Request) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(map[string]any{"heap": m.HeapAlloc, "stack": m.StackInuse, "goroutines": runtime.NumGoroutine()})
	})
	go func() { panic(http.ListenAndServe(addr, mux)) }()
}
`

// build compiles cmd/leat of this tree with the hook. The overlay adds the file to the build without writing it into the tree.
func (b *binary) build(ctx context.Context) error {
	root, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/leat-dev/leat"))
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	src := filepath.Join(b.dir, "hook.go")
	if err := os.WriteFile(src, []byte(hook), 0o600); err != nil {
		return fmt.Errorf("build leat: %w", err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd", "leat", "bench_hook.go"): src}})
	if err != nil {
		return fmt.Errorf("build leat: %w", err)
	}
	file := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return fmt.Errorf("build leat: %w", err)
	}
	b.path = filepath.Join(b.dir, "leat")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", b.path, "./cmd/leat")
	cmd.Dir = root
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("build leat: %w", err)
	}
	return nil
}

// output runs a command and returns its trimmed standard output. The error contains its standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(stdout)), nil
}

// gateway is a running program with its own data folder.
type gateway struct {
	*process
	b     *binary
	debug string // address of the hook's server
	logs  string // path of the log file
}

// startLimit is how long a start may take. On a loaded machine opening the database takes seconds.
const startLimit = 20 * time.Second

// start runs "leat serve" with the default settings and waits until it is ready. With them, each commit is synced to the disk before a viewer
// receives it.
func (b *binary) start(ctx context.Context, dir string, env ...string) (*gateway, error) {
	b.once.Do(func() { b.err = b.build(ctx) })
	if b.err != nil {
		return nil, b.err
	}
	addr, err1 := freeAddr()
	debug, err2 := freeAddr()
	data, err3 := os.MkdirTemp(dir, "data")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("start leat: %w", err)
	}
	logs, err := os.Create(data + ".log")
	if err != nil {
		return nil, fmt.Errorf("start leat: %w", err)
	}
	// The child has its own descriptor of the file.
	defer logs.Close()
	cmd := exec.Command(b.path, "serve", "--listen", addr, "--data", data, "--agent", "demo")
	// Logs at the level info would cost CPU time that the baselines don't spend. The drain time is short because every turn here is
	// pushed and would be waited for.
	cmd.Env = append(append(os.Environ(), "LEAT_LOG_LEVEL=warn", "LEAT_BENCH_DEBUG="+debug, "LEAT_DRAIN=1s"), env...)
	cmd.Stdout, cmd.Stderr = logs, logs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start leat: %w", err)
	}
	g := &gateway{process: &process{cmd: cmd, addr: addr, done: make(chan struct{})}, b: b, debug: debug, logs: logs.Name()}
	go g.wait()
	// /readyz answers 200 when the journal is open and commands are accepted. The pause between two requests is short compared with
	// the start itself, which no benchmark measures.
	deadline := time.Now().Add(startLimit)
	for {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return g, nil
			}
		}
		select {
		case <-g.done:
			return nil, fmt.Errorf("start leat: the program exited: %w\n%s", g.err, g.logTail())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), g.stop())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("start leat: not ready in %s: %w\n%s", startLimit, err, g.logTail()), g.stop())
		}
	}
}

// startTurn starts a gateway with one conversation and a pushed turn in it. The caller closes the producer and stops the gateway.
func (e *env) startTurn(ctx context.Context, id string) (*gateway, *producer, error) {
	g, err := e.leat.start(ctx, e.dir)
	if err != nil {
		return nil, nil, err
	}
	if err = g.create(ctx, id); err == nil {
		var p *producer
		if p, err = push(ctx, g.addr, id); err == nil {
			return g, p, nil
		}
	}
	return nil, nil, errors.Join(err, g.stop())
}

// logTail returns the last 4 KiB of the program's log, for error messages.
func (g *gateway) logTail() string {
	b, err := os.ReadFile(g.logs)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4096):])
}

// freeAddr returns a free loopback address. Another process could take the port before it is used; then the start fails.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// create creates a conversation with the id.
func (g *gateway) create(ctx context.Context, id string) error {
	body, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.addr+"/api/conversations", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("create conversation: %s: %s", resp.Status, text)
	}
	return nil
}

// memory is the memory in use after a garbage collection, in bytes, and the number of goroutines. The names match the hook's JSON.
type memory struct{ Heap, Stack, Goroutines int64 }

// memory asks the hook for the memory after two collections: the first one finishes what a running collection had begun, the second
// frees what became garbage meanwhile. Memory of the operating system is not in it: the kernel's socket buffers are counted apart.
func (g *gateway) memory(ctx context.Context) (m memory, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.debug+"/memory", nil)
	if err != nil {
		return m, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return m, fmt.Errorf("memory of leat: %w", err)
	}
	defer resp.Body.Close()
	return m, json.NewDecoder(resp.Body).Decode(&m)
}

// profileFor starts writing a CPU profile of the program for a duration, if profiles were requested. The returned function waits
// until the profile is written.
func (g *gateway) profileFor(ctx context.Context, name string, d time.Duration) func() error {
	if g.b.profile == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", g.debug, max(1, int(d.Seconds())))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return fmt.Errorf("profile: %w", err)
			}
			defer resp.Body.Close()
			if err := os.MkdirAll(g.b.profile, 0o755); err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(g.b.profile, name+".pprof"))
			if err != nil {
				return err
			}
			_, err = io.Copy(f, resp.Body)
			return errors.Join(err, f.Close())
		}()
	}()
	return func() error { return <-done }
}
