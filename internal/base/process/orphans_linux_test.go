package process

import (
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The test makes itself a subreaper, so that it inherits orphans as the first process of a container does. They must be reaped, without
// reaping the gateway's own processes before their goroutines do.
func TestOrphansAreReaped(t *testing.T) {
	const setSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setSubreaper, 1, 0); errno != 0 {
		t.Skipf("SKIPPED: needs a Linux that allows prctl(PR_SET_CHILD_SUBREAPER): %v", errno)
	}
	t.Cleanup(func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setSubreaper, 0, 0) })
	isInit = true
	t.Cleanup(func() { isInit = false })
	sh, err := Find([]string{"sh"})
	if err != nil {
		t.Skip("SKIPPED: sh is not installed; install a shell:", err)
	}
	run := func(script string, status int) {
		t.Helper()
		p, err := Start(Program{Path: sh, Command: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, KillAfter: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		<-p.ExitDone()
		p.Close(func() {})
		if got := p.cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%s: status %d, want %d; %v", script, got, status, p.Err())
		}
	}
	for range 3 {
		run("sleep 1000 & (sleep 1000 &) ; exit 3", 3)
	}
	// A killed process ends a moment later, without an event to wait for.
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		run("exit 0", 0)
		var info [32]int32
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, 0, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
		if errno == syscall.ECHILD {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("zombies are not reaped")
		}
	}
	if len(children) != 0 {
		t.Errorf("%d processes are still registered", len(children))
	}
}
