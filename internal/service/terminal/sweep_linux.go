// Ending what a command left running: its descendants, and processes that carry its mark.

package terminal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// mark is the environment variable with the run's id. It identifies processes of the run that left the process group.
	mark = "LEAT_RUN"
	// folderMark is the environment variable with the id of the data folder. It identifies the commands of a gateway that was
	// killed.
	folderMark = "LEAT_RUN_OF"
)

const (
	// sweepLimit is how long killed processes may take to disappear.
	sweepLimit = 5 * time.Second
	sweepPause = 5 * time.Millisecond
)

// processInfo is a process at the time of a scan. Its pid may have been reused since, by a process with another start time.
type processInfo struct {
	pid        int
	parent     int
	startTicks string // start time, in clock ticks since boot
	isZombie   bool   // exited, but not reaped by its parent
}

// readProcess reads /proc/PID/stat.
func readProcess(pid int) (processInfo, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processInfo{}, false
	}
	// The second field, the name in parentheses, may contain any character.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return processInfo{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return processInfo{pid: pid, parent: parent, startTicks: f[19], isZombie: f[0] == "Z" || f[0] == "X"}, err == nil
}

// pids returns the ids of all visible processes.
func pids() []int {
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // can't happen: the pattern is valid
	}
	var ids []int
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// descendantsOf returns the children of a process and their descendants. The process must still exist.
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

// folder returns an id of a folder: its device and inode. Unlike a path, it is the same in every container and differs between
// gateways whose folders have the same path.
func folder(dir string) (string, error) {
	i, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	st, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("stat %s: the system reports no inode", dir)
	}
	return fmt.Sprintf("%d-%d", st.Dev, st.Ino), nil
}

// Sweep kills processes that commands of an earlier gateway with this data folder left when that gateway was killed. The caller
// must have exclusive use of the folder and not have started commands yet.
func Sweep(dir string) error {
	id, err := folder(dir)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	// This gateway itself may have been started by a command of the previous one, so its ancestors are spared.
	spare := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spare[pid]; {
		spare[pid] = true
		p, _ := readProcess(pid)
		pid = p.parent
	}
	if err := sweep(folderMark+"="+id, nil, spare); err != nil {
		return fmt.Errorf("terminal: commands of an earlier gateway: %w", err)
	}
	return nil
}

// sweep kills all processes with a mark, except those in spare, and the given descendants. It repeats until none is left,
// because a process may fork while it is swept.
func sweep(want string, descendants []processInfo, spare map[int]bool) error {
	for begin := time.Now(); ; time.Sleep(sweepPause) { // the processes aren't children, so their end can only be polled
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

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) } // an error means that the process has ended

// hasMark reports whether the environment of a process contains a mark. It returns false for processes that ended, and for
// those of other users, which can't be read.
func hasMark(pid int, want string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(b), "\x00"), want)
}
