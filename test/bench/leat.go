package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	"runtime/debug"
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
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(map[string]any{"heap": m.HeapAlloc, "stack": m.StackInuse})
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
