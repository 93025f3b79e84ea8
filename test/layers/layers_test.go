package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/leat-dev/leat"
)

// layers are the packages by layer; "/..." stands for all below. The first entry that matches a package counts. The package at the
// root of the module is ".".
var layers = []struct {
	layer    int
	packages []string
}{
	{0, []string{"event", "sse", "web", "internal/base/..."}},
	{1, []string{"transcript", "internal/voice/pcm", "internal/voice/sentence"}},
	{2, []string{"dialect", "dialect/...", "internal/answer", "internal/answer/..."}},
	{3, []string{"internal/store/..."}},
	{4, []string{"agent", "agent/...", "internal/service/...", "internal/voice", "internal/voice/..."}},
	{5, []string{"internal/gateway", "internal/gateway/..."}},
	{6, []string{"internal/channel"}},
	{7, []string{"internal/channel/live"}},
	{8, []string{"internal/channel/..."}},
	{9, []string{"internal/server", "internal/server/..."}},
	{10, []string{"internal/app/outputs"}},
	{11, []string{"internal/app/config", "internal/app/doctor"}},
	{12, []string{"internal/app/serve", "internal/app/cli/console", "internal/app/cli/acp", "internal/app/cli/mcp"}},
	{13, []string{"internal/app/cli"}},
	{14, []string{".", "cmd/..."}},
}

// pure are the packages without goroutines, clocks, randomness, sockets and files. They import each other only.
var pure = []string{"event", "sse", "transcript", "dialect", "dialect/...", "internal/answer", "internal/base/jsonscan", "internal/base/markup", "internal/base/signature", "internal/voice/pcm", "internal/voice/sentence"}

// impure are the packages of the standard library that pure packages must not import.
var impure = []string{"context", "crypto/rand", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "os/signal", "runtime", "sync", "sync/atomic", "syscall"}

// clients are the packages outside the layers, with the packages that each may import.
var clients = map[string][]string{
	"clients/go":               {"event", "transcript", "sse"},
	"chattest/telegram":        {"chattest/internal/memory"},
	"chattest/discord":         {"chattest/internal/memory"},
	"chattest/slack":           {"chattest/internal/memory"},
	"chattest/matrix":          {"chattest/internal/memory"},
	"chattest/whatsapp":        {"chattest/internal/memory"},
	"chattest/feishu":          {"chattest/internal/memory"},
	"chattest/wecom":           {"chattest/internal/memory"},
	"chattest/internal/memory": {},
}

type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

func (p pkg) name() string { return relative(p.ImportPath) }

// relative returns a package's path below the module, "." for the module itself.
func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func matches(pattern, name string) bool {
	dir, below := strings.CutSuffix(pattern, "/...")
	return name == pattern || below && strings.HasPrefix(name, dir+"/")
}

func isPure(name string) bool {
	return slices.ContainsFunc(pure, func(p string) bool { return matches(p, name) })
}

func layerOf(name string) (int, bool) {
	for _, l := range layers {
		if slices.ContainsFunc(l.packages, func(p string) bool { return matches(p, name) }) {
			return l.layer, true
		}
	}
	return 0, false
}

// isSupport reports whether a package drives or builds the product: it may import everything, and the product imports none of it.
func isSupport(name string) bool {
	return strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "internal/tools/")
}

// family returns the path of the package that holds the shared types of a package's family, such as internal/store/journal for
// internal/store/journal/sqlite.
func family(name string) string {
	parts := strings.Split(name, "/")
	depth := 1
	if parts[0] == "internal" {
		depth = 2
		if len(parts) > 2 && slices.Contains([]string{"base", "store", "service", "app"}, parts[1]) {
			depth = 3
		}
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// fault returns why one package must not import another, or "" if it may.
func fault(from, to string) string {
	if allowed, ok := clients[from]; ok {
		if slices.Contains(allowed, to) {
			return ""
		}
		return "a client imports " + strings.Join(allowed, ", ") + " only"
	}
	if isSupport(from) {
		return ""
	}
	if isSupport(to) {
		return "only tests and tools may import it"
	}
	a, ok := layerOf(from)
	if !ok {
		return "the importing package is in no layer"
	}
	if isPure(from) && !isPure(to) {
		return "a pure package imports pure packages only"
	}
	b, ok := layerOf(to)
	switch {
	case !ok && clients[to] != nil && family(from) == "internal/app/cli":
		return ""
	case !ok:
		return "it is in no layer"
	case b < a:
		return ""
	case b > a:
		return "it is in a higher layer"
	case to == family(from) && to != from:
		return ""
	case strings.HasPrefix(to, family(from)+"/internal/"):
		return "" // what the members of a family share
	case strings.HasSuffix(from, "/all") && family(to) == family(from):
		return "" // it lists a whole family as a value
	case strings.HasSuffix(from, "test") && family(to) == family(from):
		return "" // it holds what a family's tests share
	}
	return "it is in the same layer and not the root of its family"
}

func TestLayers(t *testing.T) {
	for _, p := range list(t) {
		name := p.name()
		_, placed := layerOf(name)
		if _, ok := clients[name]; !ok && !placed && !isSupport(name) {
			t.Errorf("%s is in no layer: add it to layers and to ARCHITECTURE.md", name)
		}
		for _, to := range p.Imports {
			if to == module || strings.HasPrefix(to, module+"/") {
				if f := fault(name, relative(to)); f != "" {
					t.Errorf("%s imports %s: %s", name, to, f)
				}
			}
		}
	}
}

// ARCHITECTURE.md lists the same layers.
func TestArchitectureListsTheLayers(t *testing.T) {
	b, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*$`, l.layer)).FindString(string(b))
		for _, p := range l.packages {
			if name := strings.TrimSuffix(p, "/..."); name != "." && !strings.Contains(row, "`"+name) {
				t.Errorf("layer %d does not name %s: %q", l.layer, name, row)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	for _, p := range list(t) {
		if name := p.name(); isPure(name) && !strings.HasSuffix(name, "test") {
			for _, to := range p.Imports {
				if slices.Contains(impure, to) {
					t.Errorf("%s imports %s, but it must be pure", name, to)
				}
			}
		}
	}
}

// The rules accept what they should and refuse what they should.
func TestFault(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"internal/store/feed", "event", true},
		{"internal/store/feed", "internal/store/journal", false},
		{"internal/store/journal/sqlite", "internal/store/journal", true},
		{"internal/store/journal/sqlite", "internal/store/journal/internal/compact", true},
		{"internal/store/journal/sqlite", "internal/store/journal/memory", false},
		{"internal/store/journal", "internal/base/process", true},
		{"internal/base/process", "internal/store/journal", false},
		{"internal/base/process", "internal/base/outbound", false},
		{"event", "transcript", false},
		{"transcript", "event", true},
		{"dialect/all", "dialect/openclaw", true},
		{"dialect/openclaw", "dialect/anthropic", false},
		{"dialect/openclaw", "internal/base/jsonscan", true},
		{"dialect/openclaw", "internal/base/process", false},
		{"agent/all", "agent/demo", true},
		{"agent/demo", "agent/replay", false},
		{"internal/service/audit", "internal/service/usage", false},
		{"internal/server/native", "internal/server", true},
		{"internal/server/native", "internal/server/eliza", false},
		{"internal/gateway", "internal/server", false},
		{"internal/app/outputs", "internal/server/vercel", true},
		{"internal/app/outputs", "internal/app/config", false},
		{"internal/app/config", "internal/gateway", true},
		{"internal/app/config", "internal/app/cli", false},
		{"internal/app/cli", "internal/app/config", true},
		{"internal/app/cli", "internal/app/serve", true},
		{"internal/app/serve", "internal/app/cli", false},
		{"internal/app/cli", "clients/go", true},
		{"cmd/leat", "internal/app/cli", true},
		{".", "internal/server/native", true},
		{"agent", ".", false},
		{"internal/app/cli", "test/browser", false},
		{"internal/app/cli", "internal/tools/lint", false},
		{"internal/server/ui", "clients/go", false},
		{"clients/go", "transcript", true},
		{"clients/go", "internal/store/feed", false},
		{"internal/gateway", "test/browser", false},
		{"test/bench", "internal/app/cli", true},
	} {
		if f := fault(tt.from, tt.to); (f == "") != tt.ok {
			t.Errorf("%s imports %s: %q", tt.from, tt.to, f)
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,GoFiles", module+"/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages were found", len(all))
	}
	return all
}
