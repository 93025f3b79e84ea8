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
	"time"
)

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
func (b *binary) start(ctx context.Context, dir, agent string) (*gateway, error) {
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
	cmd := exec.Command(b.path, "serve", "--listen", addr, "--data", data, "--agent", agent)
	// Logs at the level info would cost CPU time that the baselines don't spend. The drain time is short because every turn here is
	// pushed and would be waited for.
	cmd.Env = append(os.Environ(), "LEAT_LOG_LEVEL=warn", "LEAT_BENCH_DEBUG="+debug, "LEAT_DRAIN=100ms")
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
	return g.post(ctx, "/api/conversations", map[string]string{"id": id})
}

// ask sends a message, which the agent answers.
func (g *gateway) ask(ctx context.Context, id, text string) error {
	return g.post(ctx, "/api/conversations/"+id+"/commands", map[string]any{"type": "send", "message": map[string]string{"text": text}})
}

// post sends a request with a JSON body.
func (g *gateway) post(ctx context.Context, path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.addr+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("POST %s: %s: %s", path, resp.Status, answer)
	}
	return nil
}

// memory asks the hook for the memory after two collections: the first one finishes what a running collection had begun, the second
// frees what became garbage meanwhile. Memory of the operating system is not in it: the kernel's socket buffers are counted separately.
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
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return m, err
	}
	m.RSS, err = g.rss()
	return m, err
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
