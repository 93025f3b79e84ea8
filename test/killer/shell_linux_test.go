package killer

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sleepers returns the processes that sleep for a number of seconds that no other test uses.
func sleepers(t *testing.T, word string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, []byte("sleep\x00"+word+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// After a kill of the gateway, the next start kills the processes of terminal commands, even if the terminal was
// turned off meanwhile. Processes of a gateway with another folder are left alone.
func TestShellOfAKilledGateway(t *testing.T) {
	const token = "a-token-of-the-terminal"
	dir := t.TempDir()
	file := filepath.Join(dir, "leat.yaml")
	if err := os.WriteFile(file, []byte("terminal:\n  enabled: true\n  token: "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mine, other := fmt.Sprintf("5%d", os.Getpid()), fmt.Sprintf("6%d", os.Getpid())
	t.Cleanup(func() {
		for _, pid := range append(sleepers(t, mine), sleepers(t, other)...) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	})
	var programs [2]*program
	for i, word := range []string{mine, other} {
		p := newProgram(t, filepath.Join(dir, word), "--config", file)
		if err := p.start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
		programs[i] = p
		res, err := http.Post(p.url()+"/api/terminal/run", "application/json",
			strings.NewReader(`{"command":"setsid sleep `+word+` & wait","clientId":"c","terminalToken":"`+token+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		for begin := time.Now(); len(sleepers(t, word)) == 0; time.Sleep(time.Millisecond) { // polls another process
			if time.Since(begin) > readyLimit {
				t.Fatal("the command does not run")
			}
		}
	}
	// A process with the mark of another folder.
	stranger := exec.CommandContext(t.Context(), "sleep", other)
	stranger.Env = append(os.Environ(), "LEAT_RUN=run-1-a", "LEAT_RUN_OF=1-1")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()

	p := programs[0]
	if err := p.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if len(sleepers(t, mine)) != 1 {
		t.Fatal("no process was left, so the test proves nothing")
	}
	var st syscall.Stat_t
	if err := syscall.Stat(p.data, &st); err != nil {
		t.Fatal(err)
	}
	p.args = nil
	p.env = append(p.env, fmt.Sprintf("LEAT_RUN_OF=%d-%d", st.Dev, st.Ino)) // as if the command before had started it; it does not end itself
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	if left := sleepers(t, mine); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left := sleepers(t, other); len(left) != 2 {
		t.Errorf("%d processes of other folders are left", len(left))
	}
	for _, p := range programs {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
