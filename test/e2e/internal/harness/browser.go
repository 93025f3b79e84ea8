//go:build e2e

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browserLimit is several times as long as the slowest script takes.
const browserLimit = 15 * time.Minute

// Action is a request that a script in the browser can send to its test: to do something outside of the page, or to answer a
// question. The result is sent back as JSON.
type Action func(ctx context.Context) (any, error)

// KillAction returns an action that kills the program.
func (p *Program) KillAction() Action {
	return func(context.Context) (any, error) { p.Signal(syscall.SIGKILL); return nil, nil }
}

// StartAction returns an action that starts the program.
func (p *Program) StartAction() Action {
	return func(ctx context.Context) (any, error) { return nil, p.start(ctx) }
}

// ActionOf returns an action that calls f.
func ActionOf(f func()) Action {
	return func(context.Context) (any, error) { f(); return nil, nil }
}

// RunBrowser runs a script of web/test/real, which tests the dashboard in Chromium. The script finds facts as JSON in $FACTS
// and requests an action with POST $CONTROL/NAME. The test is skipped if Node, Chromium or Playwright is missing.
func RunBrowser(t *testing.T, script string, facts map[string]any, acts map[string]Action) {
	web := webFolder(t)
	mux := http.NewServeMux()
	for name, act := range acts {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			// The test's context, not the request's: a program that the action starts must outlive the request.
			v, err := act(t.Context())
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(v) // fails only if the script has ended, which the test reports
		})
	}
	control := httptest.NewServer(mux)
	defer control.Close()
	b, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", filepath.Join("test", "real", script))
	cmd.Dir, cmd.Env = web, append(os.Environ(), "CONTROL="+control.URL, "FACTS="+string(b), "NO_COLOR=1", "NODE_OPTIONS=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	passed := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		t.Log(lines.Text())
		if strings.HasPrefix(lines.Text(), "✔") {
			passed++
		}
		if skipSummary.MatchString(lines.Text()) {
			t.Error("a test in the browser was skipped")
		}
	}
	if err := cmd.Wait(); err != nil || passed == 0 {
		t.Errorf("%d browser tests passed: %v", passed, err)
	}
}

var skipSummary = regexp.MustCompile(`^ℹ (skipped|todo|cancelled) [1-9]`)

// webFolder returns the folder web. It skips the test if something that browser tests need is not installed.
func webFolder(t *testing.T) string {
	t.Helper()
	web, err := filepath.Abs(filepath.Join("..", "..", "..", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed; install it to look at this in a browser")
	}
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		chromium = "/usr/bin/chromium"
	}
	if _, err := os.Stat(chromium); err != nil {
		t.Skip("SKIPPED: Chromium is not installed; on Debian: apt-get install chromium")
	}
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		t.Skip("SKIPPED: Playwright is not installed; run npm ci in web")
	}
	return web
}
