package process

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// What a process has started becomes a child of the first process of its container when that process has ended, and a zombie when it
// ends itself, until the first process waits for it. Where that is this one, it does: after each end of a process of its own, so that
// few are left at any time. Whoever starts processes in another way than by [Start] would be in its way.
var (
	first = os.Getpid() == 1

	ownMu sync.Mutex
	own   = map[int]*Process{} // those that somebody waits for, by id
)

// begin starts a process.
func begin(p *Process) error {
	if !first {
		return p.cmd.Start()
	}
	ownMu.Lock() // until it is known, it would be an orphan
	defer ownMu.Unlock()
	err := p.cmd.Start()
	if err == nil {
		own[p.cmd.Process.Pid] = p
	}
	return err
}

// over is called once a process was waited for.
func over(p *Process) {
	if !first {
		return
	}
	ownMu.Lock()
	defer ownMu.Unlock()
	if pid := p.cmd.Process.Pid; own[pid] == p {
		delete(own, pid)
	}
	for {
		pid := waitable()
		if pid == 0 || own[pid] != nil { // one of those: it calls this again
			return
		}
		if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err != nil {
			return
		}
	}
}

// waitable is the id of a child that has ended and that nobody has waited for; 0, there is none.
func waitable() int {
	const pAll = 0                    // P_ALL of waitid(2)
	var info [32]int32                // siginfo_t, which has 128 bytes
	const at = 2 + strconv.IntSize/32 // si_pid, behind three numbers and a gap on machines of 64 bits
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(info[at])
}
