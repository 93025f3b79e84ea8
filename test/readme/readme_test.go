package readme

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// startLimit is how long the first command may take: the program is compiled for it.
const startLimit = 5 * time.Minute

var (
	snippet = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?")
	links   = regexp.MustCompile(`\]\(([^)#]+)\)`)
)

// changing is what differs from run to run.
var changing = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
}

func steady(s string) string {
	for _, c := range changing {
		s = c.what.ReplaceAllString(s, c.name)
	}
	return strings.TrimSpace(s)
}

func read(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The links of the README lead to existing files.
func TestLinks(t *testing.T) {
	all := links.FindAllStringSubmatch(read(t), -1)
	if len(all) < 5 {
		t.Fatalf("links: %v", all)
	}
	for _, m := range all {
		if strings.HasPrefix(m[1], "http") {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// Every command of the README runs unchanged except for the address, and prints the documented output.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	for _, program := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to have the commands of README.md run (apt-get install %s)", program, program)
		}
	}
	text := read(t)
	all := snippet.FindAllStringSubmatch(text, -1)
	if n := strings.Count(text, "```sh"); n != len(all) || n < 5 {
		t.Fatalf("%d snippets, %d of them understood", n, len(all))
	}
	url := ""
	for _, m := range all {
		command, want := strings.TrimSpace(m[1]), m[2]
		switch {
		case command == "go test ./...":
			// This is it. That the pattern finds packages is what can be checked from inside.
			if out := run(t, "go list ./...", nil); strings.Count(out, "\n") < 20 {
				t.Errorf("go list ./... finds %s", out)
			}
		case strings.HasSuffix(command, "sh install.sh"):
			// The test of internal/tools/dist runs the script.
		case command == "leat serve":
			url = serve(t)
		case strings.HasPrefix(command, "leat serve "):
			// The command with the reader's agents is run by TestOwnAgents.
		case strings.Contains(command, "/events"):
			// It does not end by itself: it is read until the answer is there.
			until := regexp.MustCompile(`"outcome":"completed"`)
			out := run(t, strings.ReplaceAll(command, "http://127.0.0.1:31337", url), until)
			if !until.MatchString(out) || !strings.Contains(out, "6 * 7 = 42") {
				t.Errorf("%s\nprints %s", command, out)
			}
		default:
			installed := "PATH=" + filepath.Dir(program(t)) + ":$PATH\n"
			out := run(t, installed+strings.ReplaceAll(command, "http://127.0.0.1:31337", url), nil)
			if want != "" {
				if d := cmp.Diff(strings.TrimSpace(want), steady(out)); d != "" {
					t.Errorf("%s (-README +printed)\n%s", command, d)
				}
			} else if strings.Contains(command, "/turns?") && !strings.Contains(out, `"outcome":"completed"`) {
				t.Errorf("%s\nprints %s", command, out)
			}
		}
	}
	if url == "" {
		t.Error("the README starts no gateway")
	}
}

// built is where the program is, once a test has needed it.
var built struct {
	sync.Once
	dir, binary string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// program makes the program, once for all tests.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		dir, err := os.MkdirTemp("", "readme")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.binary = dir, filepath.Join(dir, "leat")
		run(t, "go build -o "+built.binary+" ./cmd/leat", nil)
	})
	return built.binary
}

// serve starts the gateway as the README says, but on a free port, with a separate data folder and a demo without delays.
func serve(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(program(t), append([]string{"serve"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "LEAT_LISTEN=127.0.0.1:0", "LEAT_AGENTS=demo?speed=0", "LEAT_DATA="+t.TempDir(), "LEAT_API_TOKEN=", "ELIZA_API_TOKEN=", "LEAT_CONFIG=")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`listens on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until it ends
			return m[1]
		}
	}
	t.Fatal("the gateway does not say where it listens")
	return ""
}

// run runs a command of the README from the root of the project, until it ends or has printed what is waited for.
func run(t *testing.T, command string, until *regexp.Regexp) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", command)
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	found := false
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		b.WriteString(line)
		if until != nil && until.MatchString(line) {
			found = true
			cancel()
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil && !found {
		t.Errorf("%s\n%v\n%s%s", command, err, b.String(), stderr.String())
	}
	return b.String()
}
