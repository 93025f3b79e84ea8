//go:build unix

package exec_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
)

func pidOf(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs. One that has ended and wasn't waited for doesn't.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !isDir("/proc/self")
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Processes in the program's group end with it. A process that left the group doesn't delay the end of the turn.
func TestWhatItStarted(t *testing.T) {
	for _, how := range []string{"parent", "deserted"} {
		t.Run(how, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			begin := time.Now()
			s := agenttest.NewStage(t.Context())
			if err := s.Run(newAgent(t, how+" "+file, ""), input); err != nil {
				t.Fatal(err)
			}
			wantTurn(t, s, event.Completed, "begun")
			if took := time.Since(begin); took > time.Minute { // the other process runs for an hour
				t.Errorf("it took %v", took)
			}
			pid := pidOf(t, file)
			switch how {
			case "parent":
				wantGone(t, pid)
			default:
				if !alive(pid) {
					t.Error("the process that left the group is gone; the test proves nothing")
				}
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// On Linux a program doesn't survive a gateway that was killed.
func TestTheGatewayIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux ends children with their parent; run it there")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := osexec.CommandContext(t.Context(), self, "child", "gateway").Output()
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the gateway ended with %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, pid)
}

// wantGone waits until a process has ended.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	for begin := time.Now(); alive(pid); {
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d is left behind", pid)
		}
		time.Sleep(time.Millisecond) // its new parent must wait for it first
	}
}

// children returns the child processes of this process that weren't waited for.
func children(t *testing.T) []string {
	t.Helper()
	if !isDir("/proc/self") {
		t.Skip("SKIPPED: needs /proc to see processes; run it on Linux")
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended in the meantime
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[1] == strconv.Itoa(os.Getpid()) {
			all = append(all, string(b))
		}
	}
	return all
}

func inSequence(t *testing.T, n int) {
	before, files := len(children(t)), openFiles(t)
	a := makeAgent(t, `exec:sh -c 'read -r input; sleep 3600 & echo "{\"type\":\"chunk\",\"text\":\"hey\"}"; echo "{\"type\":\"done\"}"'`)
	for range n {
		s := agenttest.NewStage(t.Context())
		if err := s.Run(a, input); err != nil {
			t.Fatal(err)
		}
		wantTurn(t, s, event.Completed, "hey")
	}
	if after := children(t); len(after) != before {
		t.Errorf("%d children are left behind: %q", len(after)-before, after)
	}
	if after := openFiles(t); after > files {
		t.Errorf("%d files were open, now %d", files, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("SKIPPED: needs /proc to see open files; run it on Linux")
	}
	return len(all)
}

// No process and no file is left behind. Each program starts another process that would be.
func TestLeavesNoneBehind(t *testing.T) { inSequence(t, 25) }

func TestLeavesNoneBehindFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: it starts 1,000 processes; set LEAT_FULL=1 to run it")
	}
	inSequence(t, 1000)
}
