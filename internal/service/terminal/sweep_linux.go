package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// mark is the environment variable that names the run, for those of its processes that leave their group.
	mark = "LEAT_RUN"
	// folderMark is the one that names the gateway's data folder, for the next gateway of it where this one is killed.
	folderMark = "LEAT_RUN_OF"
)

const (
	// sweepLimit is how long processes that were killed may take to go.
	sweepLimit = 5 * time.Second
	sweepPause = 5 * time.Millisecond
)

// seen is a process that was there at some time. Its id may belong to another one by now, which began later.
type processInfo struct {
	pid        int
	parent     int
	startTicks string // in the system's ticks
	isZombie   bool   // nobody has waited for it
}

// look reads what there is to know of a process.
func readProcess(pid int) (processInfo, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processInfo{}, false
	}
	// The name, in brackets, may hold anything.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return processInfo{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return processInfo{pid: pid, parent: parent, startTicks: f[19], isZombie: f[0] == "Z" || f[0] == "X"}, err == nil
}

// pids are all processes that can be seen.
func pids() []int {
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // the pattern is right
	}
	var ids []int
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// descent returns the processes that came of one, which still has to be there.
func descendantsOf(root int) []processInfo {
	children := map[int][]processInfo{}
	for _, pid := range pids() {
		if p, ok := readProcess(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var result []processInfo
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			result = append(result, p)
			next = append(next, p.pid)
		}
	}
	return result
}

// folder names a folder as the system does. As no two have that name at one time, it tells gateways apart that call theirs the
// same, in containers too.
func folder(dir string) (string, error) {
	i, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	st, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("stat %s: nothing is known of it", dir)
	}
	return fmt.Sprintf("%d-%d", st.Dev, st.Ino), nil
}

// Sweep ends what commands have left behind of an earlier gateway with this data folder, if that was killed. It is for a gateway that
// has the folder to itself, before it runs commands of its own.
func Sweep(dir string) error {
	id, err := folder(dir)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	// Somebody may have started this very gateway by a command of the one before.
	spare := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spare[pid]; {
		spare[pid] = true
		p, _ := readProcess(pid)
		pid = p.parent
	}
	if err := sweep(folderMark+"="+id, nil, spare); err != nil {
		return fmt.Errorf("terminal: of an earlier gateway %w", err)
	}
	return nil
}

// sweep kills what carries a mark but for those to spare, and those of a descent. It returns when nothing is left.
func sweep(want string, descendants []processInfo, spare map[int]bool) error {
	for begin := time.Now(); ; time.Sleep(sweepPause) { // another process's end: there is nothing to wait on
		count := 0
		for _, p := range descendants {
			if current, ok := readProcess(p.pid); ok && !current.isZombie && current.startTicks == p.startTicks {
				count++
				kill(p.pid)
			}
		}
		for _, pid := range pids() {
			if !spare[pid] && hasMark(pid, want) {
				count++
				kill(pid)
			}
		}
		if count == 0 {
			return nil
		}
		if time.Since(begin) > sweepLimit {
			return fmt.Errorf("%d processes did not end in %s", count, sweepLimit)
		}
	}
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) } // it may be gone

// marked reports whether a process carries a mark. Of what has ended, and of other users', nothing can be read.
func hasMark(pid int, want string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if string(v) == want {
			return true
		}
	}
	return false
}
