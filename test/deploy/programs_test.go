//go:build unix

package deploy

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
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
	if scratch, err = os.MkdirTemp("", "leat-deploy"); err != nil {
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

var build = sync.OnceValue(func() error {
	_, err := binary.Build(scratch)
	return err
})

func leatBinary(t *testing.T) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(scratch, "leat")
}

func look(t *testing.T, program, from string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("SKIPPED: %s is not installed; it comes with %s", program, from)
	}
	return path
}

// systemd takes the units as they are, and calls the service well shut in.
func TestUnits(t *testing.T) {
	analyze := look(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	for _, name := range []string{"leat.service", "leat.socket"} {
		// The program isn't installed here, so only its presence is checked.
		text := strings.ReplaceAll(file(t, name), "/usr/local/bin/leat", "/bin/sh")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	service := filepath.Join(dir, "leat.service")
	if out, err := exec.Command(analyze, "verify", service, filepath.Join(dir, "leat.socket")).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=yes", service).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: this systemd can't judge a unit that is not installed: %v\n%s", err, out)
	}
	m := regexp.MustCompile(`exposure level for leat.service: (\S+)`).FindSubmatch(out)
	if m == nil || !regexp.MustCompile(`^[01]\.\d$`).Match(m[1]) {
		t.Errorf("exposure: %s", out)
	} else {
		t.Logf("exposure level %s of 10", m[1])
	}
}

// service is the program, started as systemd starts it.
type service struct {
	url string
	cmd *exec.Cmd
	log lockedBuffer
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

// activated starts the program as systemd does, with a socket that is passed on to it.
func activated(t *testing.T, env ...string) *service {
	t.Helper()
	activate := look(t, "systemd-socket-activate", "systemd")
	addr := freeAddress(t)
	g := &service{url: "http://" + addr}
	args := []string{"-l", addr}
	for _, e := range append([]string{"LEAT_DATA=" + t.TempDir(), "LEAT_LISTEN=127.0.0.1:1"}, env...) { // which is not looked at
		args = append(args, "-E", e)
	}
	g.cmd = exec.Command(activate, append(args, leatBinary(t), "serve")...)
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = g.cmd.Process.Kill() // it hangs, or the test has failed before
		}
	})
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // polls another process
		res, err := http.Get(g.url + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Fatalf("%s\n%s", res.Status, &g.log)
			}
			// It answers before it says where it listens.
			if strings.Contains(g.log.String(), "listens on ") {
				break
			}
		}
		if time.Since(begin) > waitLimit {
			t.Fatalf("%v\n%s", err, &g.log)
		}
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		late := time.AfterFunc(waitLimit, func() { _ = g.cmd.Process.Kill() })
		defer late.Stop()
		err := errors.Join(g.cmd.Process.Signal(syscall.SIGTERM), g.cmd.Wait())
		ended = true
		if err != nil {
			t.Errorf("it ends with %v\n%s", err, &g.log)
		}
	})
	return g
}

// The sockets of systemd are taken in place of the configured addresses.
func TestSocketActivation(t *testing.T) {
	g := activated(t, "LEAT_PUBLIC_URL=http://localhost/leat")
	res, err := http.Get(g.url + "/leat/api/agents")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
	if said := g.log.String(); !strings.Contains(said, "listens on "+g.url+"/leat\n") {
		t.Errorf("it says %s", said)
	}
}

// The commands of the page do what it says.
func TestReadmeCommands(t *testing.T) {
	bash := look(t, "bash", "every system but Windows")
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(file(t, "README.md"), -1)
	if len(commands) < 2 {
		t.Fatalf("commands: %q", commands)
	}
	g := activated(t, "LEAT_API_TOKEN="+token)
	dir := t.TempDir()
	for _, m := range commands {
		cmd := exec.Command(bash, "-euc", m[1])
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(leatBinary(t))+":"+os.Getenv("PATH"), "LEAT_URL="+g.url, "LEAT_API_TOKEN="+token)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s%v\n%s", m[1], err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "restored", "leat.db")); err != nil {
		t.Error(err)
	}
}

// TestFullImage makes what the image holds: with Docker where its daemon runs, else by the image's own build command.
func TestFullImage(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: it compiles everything again; set LEAT_FULL=1 to run it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	if docker, err := exec.LookPath("docker"); err == nil && exec.Command(docker, "info").Run() == nil {
		run := func(args ...string) string {
			t.Helper()
			out, err := exec.CommandContext(ctx, docker, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("docker %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		run("build", "-f", docs+"Dockerfile", "-t", "leat:deploy-test", "../..")
		if out := run("run", "--rm", "--read-only", "leat:deploy-test", "version"); !strings.Contains(out, "leat") {
			t.Errorf("it says %q", out)
		}
		return
	}
	t.Log("no Docker daemon runs here: the image is not made, only the program that it would hold")
	for _, in := range instructions(file(t, "Dockerfile")) {
		line := strings.Join(in, " ")
		if !strings.Contains(line, "go build") {
			continue
		}
		path := filepath.Join(t.TempDir(), "leat")
		command := strings.ReplaceAll(strings.TrimPrefix(line, "RUN "), "/out/leat", path)
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if runtime.GOOS != "linux" {
			t.Skip("SKIPPED: only Linux shows whether it is static; run it there")
		}
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Error("it needs a loader, which the image has not")
			}
		}
		return
	}
	t.Error("the Dockerfile builds nothing")
}
