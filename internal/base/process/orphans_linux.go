package process

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// If a process ends before its children, they become children of the container's first process, and stay zombies until that reaps
// them. If the gateway is the first process, it reaps them whenever one of its processes ends, so few zombies exist at a time.
// Processes must therefore be started with [Start] only: others would be reaped here.
var (
	isInit = os.Getpid() == 1

	childrenMu sync.Mutex
	children   = map[int]*Process{} // processes with a waiting goroutine, by id
)

// startChild starts a process and registers it, so that reapOrphans doesn't take it for an orphan.
func startChild(p *Process) error {
	if !isInit {
		return p.cmd.Start()
	}
	childrenMu.Lock() // until it is in children, it would be taken for an orphan
	defer childrenMu.Unlock()
	err := p.cmd.Start()
	if err == nil {
		children[p.cmd.Process.Pid] = p
	}
	return err
}

// reapOrphans removes p, which was just reaped, from children, and reaps the orphans that have ended.
func reapOrphans(p *Process) {
	if !isInit {
		return
	}
	childrenMu.Lock()
	defer childrenMu.Unlock()
	if pid := p.cmd.Process.Pid; children[pid] == p {
		delete(children, pid)
	}
	for {
		pid := waitable()
		if pid == 0 || children[pid] != nil { // its own goroutine reaps it and calls this again
			return
		}
		if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err != nil {
			return
		}
	}
}

// waitable returns the id of a child that has ended and isn't reaped, or 0.
func waitable() int {
	const pAll = 0                    // P_ALL of waitid(2)
	var info [32]int32                // siginfo_t, which has 128 bytes
	const at = 2 + strconv.IntSize/32 // si_pid follows three integers, and padding on 64-bit machines
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(info[at])
}
