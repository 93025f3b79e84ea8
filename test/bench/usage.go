package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time of a process so far. The clock of the scheduler is exact to the nanosecond, unlike /proc/PID/stat.
func cpuOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	// The id of another process's CPU clock is made as clock_getcpuclockid(3) makes it; 2 is the scheduler's clock.
	if err := unix.ClockGettime(int32(^pid)<<3|2, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// cpu returns the CPU time of the process so far.
func (p *process) cpu() (time.Duration, error) { return cpuOf(p.cmd.Process.Pid) }

// rss returns the resident memory of the process in bytes.
func (p *process) rss() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, errors.New("unexpected /proc/statm")
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	return n * int64(os.Getpagesize()), err
}

// switches returns how often the threads of the process went to sleep so far, which is about how often they were woken.
func (p *process) switches() (n int64, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				k, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				if err != nil {
					return 0, err
				}
				n += k
			}
		}
	}
	return n, nil
}

// memory is the memory of a process after garbage collections, in bytes. The names match those of the hook's JSON.
type memory struct {
	Heap, Stack int64
	RSS         int64 `json:"-"` // after free memory was returned to the system
}

// used returns the memory of the program's own data.
func (m memory) used() float64 { return float64(m.Heap + m.Stack) }

// answerMemory answers each line of r with the memory of this process.
func answerMemory(r io.Reader, w io.Writer) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		// The second collection frees what became garbage during the first, and returns free memory to the system.
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(map[string]uint64{"heap": m.HeapAlloc, "stack": m.StackInuse})
	}
}

// memory returns the memory of a child after garbage collections.
func (p *process) memory(context.Context) (m memory, err error) {
	if _, err := io.WriteString(p.in, "memory\n"); err != nil {
		return m, fmt.Errorf("memory: %w", err)
	}
	if err := p.out.Decode(&m); err != nil {
		return m, fmt.Errorf("memory: %w", err)
	}
	m.RSS, err = p.rss()
	return m, err
}
