package floors

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

const module = "github.com/leat-dev/leat/"

// floors are the packages by floor; "/..." stands for all below. The first entry that fits a package counts.
var floors = []struct {
	floor    int
	packages []string
}{
	{0, []string{"event", "sse", "web", "internal/jsonscan", "internal/signature"}},
	{1, []string{"transcript"}},
	{2, []string{"dialect", "dialect/..."}},
	{3, []string{"journal", "journal/...", "feed", "feed/...", "files", "pace", "outbound", "internal/process"}},
	{4, []string{"agent", "agent/...", "audit", "plugins", "quota", "rawlog", "signals", "terminal", "usage", "webhook"}},
	{5, []string{"gateway", "gateway/..."}},
	{6, []string{"server", "server/...", "config", "internal/doctor"}},
	{7, []string{"internal/cli"}},
	{8, []string{"cmd/..."}},
}

// pure floors have no goroutines, clocks, randomness, sockets or files.
const pure = 2

// worldly are the packages of the standard library by which a program reaches the world.
var worldly = []string{"context", "crypto/rand", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "os/signal", "runtime", "sync", "sync/atomic", "syscall"}

// beside are the packages beside the house, with what of it they may import.
var beside = map[string][]string{
	"clients/go": {"event", "transcript", "sse"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func floorOf(name string) (int, bool) {
	for _, f := range floors {
		for _, p := range f.packages {
			if dir, below := strings.CutSuffix(p, "/..."); name == p || below && strings.HasPrefix(name, dir+"/") {
				return f.floor, true
			}
		}
	}
	return 0, false
}

// family is the first part of a package's path, which names the root that holds its family's types.
func family(name string) string {
	root, _, _ := strings.Cut(name, "/")
	return root
}

// fault says what is wrong with one import, empty where nothing is.
func fault(from, to string) string {
	if allowed, ok := beside[from]; ok {
		if slices.Contains(allowed, to) {
			return ""
		}
		return "a client imports " + strings.Join(allowed, ", ") + " only"
	}
	if strings.HasPrefix(to, "internal/") {
		_, placed := floorOf(to)
		if _, above := floorOf(from); !placed && (above || !strings.HasPrefix(from, "internal/")) {
			return "only tests and their helpers import it"
		}
	}
	a, ok := floorOf(from)
	if !ok {
		return "" // a helper of tests, which may use what it tests
	}
	b, ok := floorOf(to)
	switch {
	case !ok && beside[to] != nil && a == 7:
		return ""
	case !ok:
		return "it stands on no floor"
	case b < a:
		return ""
	case b > a:
		return "it is on a higher floor"
	case from == to || to == family(from) && to != from:
		return ""
	case strings.HasPrefix(to, family(from)+"/internal/"):
		return "" // what the members of a family share
	case strings.HasSuffix(from, "/all") && family(to) == family(from):
		return "" // it brings a whole family together, as a value
	case strings.HasSuffix(from, "test") && family(to) == family(from):
		return "" // it holds what a family's tests share
	}
	return "it is on the same floor, and not the root of its family"
}

func TestFloors(t *testing.T) {
	for _, p := range list(t) {
		name := p.name()
		_, placed := floorOf(name)
		if _, ok := beside[name]; !ok && !placed && !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "bench") && p.ImportPath+"/" != module {
			t.Errorf("%s stands on no floor: give it one in floors and in ARCHITECTURE.md", name)
		}
		for _, to := range p.Imports {
			if to, ok := strings.CutPrefix(to, module); ok {
				if f := fault(name, to); f != "" {
					t.Errorf("%s imports %s: %s", name, to, f)
				}
			}
		}
	}
}

// ARCHITECTURE.md tells of the same floors.
func TestArchitectureNamesTheFloors(t *testing.T) {
	b, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range floors {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*$`, f.floor)).FindString(string(b))
		for _, p := range f.packages {
			if name := strings.TrimSuffix(p, "/..."); !strings.Contains(row, "`"+name) {
				t.Errorf("floor %d does not name %s: %q", f.floor, name, row)
			}
		}
	}
}

func TestLowerFloorsArePure(t *testing.T) {
	for _, p := range list(t) {
		name := p.name()
		floor, ok := floorOf(name)
		if !ok || floor > pure || strings.HasSuffix(name, "test") {
			continue
		}
		for _, to := range p.Imports {
			if slices.Contains(worldly, to) {
				t.Errorf("%s imports %s: floors 0 to %d are pure", name, to, pure)
			}
		}
	}
}

// The check itself has to see what it is there for.
func TestFault(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"feed", "event", true},
		{"feed", "journal", false},
		{"journal/sqlite", "journal", true},
		{"journal/sqlite", "journal/internal/settle", true},
		{"journal/sqlite", "journal/memory", false},
		{"event", "transcript", false},
		{"transcript", "event", true},
		{"dialect/all", "dialect/openclaw", true},
		{"dialect/openclaw", "dialect/anthropic", false},
		{"agent/all", "agent/demo", true},
		{"agent/demo", "agent/replay", false},
		{"server/native", "server", true},
		{"server/native", "server/eliza", false},
		{"gateway", "server", false},
		{"config", "gateway", true},
		{"config", "server", false},
		{"internal/cli", "clients/go", true},
		{"cmd/leat", "internal/cli", true},
		{"internal/cli", "internal/browser", false},
		{"server/ui", "clients/go", false},
		{"clients/go", "transcript", true},
		{"clients/go", "feed", false},
		{"gateway", "internal/browser", false},
	} {
		if f := fault(tt.from, tt.to); (f == "") != tt.ok {
			t.Errorf("%s imports %s: %q", tt.from, tt.to, f)
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,GoFiles", module+"...")
	cmd.Dir = "../.."
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
