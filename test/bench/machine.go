package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// describe writes the hardware, the system and the speed of the disk. Figures can only be compared with others of the same machine.
func describe(w io.Writer, dir string) error {
	p50, p99, err := fsyncTime(dir, 300)
	if err != nil {
		return err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return fmt.Errorf("read kernel release: %w", err)
	}
	kind, err := fileSystem(dir)
	if err != nil {
		return err
	}
	cpu, err := cpuModel()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "- Machine: %s, %d cores; %s/%s, Linux %s; %s\n", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		strings.TrimSpace(string(kernel)), runtime.Version())
	fmt.Fprintf(w, "- Disk: %s; fdatasync of 4 KiB appended: p50 %.2f ms, p99 %.2f ms\n", kind, millis(p50), millis(p99))
	fmt.Fprintf(w, "- Date: %s\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	return nil
}

// busyTime returns the CPU time that was taken from the machine since its start, and that of this process and its ended children.
func busyTime() (all, own time.Duration, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	// cpu user nice system idle iowait irq softirq steal ... Interrupts aren't counted, because those of the loopback are the load's own and
	// belong to no process.
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, 0, errors.New("unexpected /proc/stat")
	}
	for _, i := range []int{1, 2, 3, 8} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += time.Duration(n) * clockTick
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, 0, err
		}
		own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all, own, nil
}

// clockTick is the unit of CPU times in /proc. On Linux it is always 10 ms in user space.
const clockTick = 10 * time.Millisecond

// cpuModel returns the model name of the first CPU in /proc/cpuinfo.
func cpuModel() (string, error) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", fmt.Errorf("describe machine: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v), nil
		}
	}
	return "unknown CPU", nil
}

// fsyncTime measures n appends of a page followed by fdatasync. The figures of durable writes depend on it.
func fsyncTime(dir string, n int) (p50, p99 time.Duration, err error) {
	f, err := os.CreateTemp(dir, "fsync")
	if err != nil {
		return 0, 0, fmt.Errorf("measure fsync: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	// 4 KiB is the page of the database and of the file system, the least that a sync writes.
	page := make([]byte, 4096)
	samples := make([]int64, 0, n)
	for range n {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, 0, fmt.Errorf("measure fsync: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, 0, fmt.Errorf("measure fsync: %w", err)
		}
		samples = append(samples, int64(time.Since(start)))
	}
	q := quantiles(samples, 0.5, 0.99)
	return q[0], q[1], nil
}

// fileSystem returns the type of the file system of a folder. In /proc/mounts, that is the mount with the longest matching path.
func fileSystem(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("describe disk: %w", err)
	}
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", fmt.Errorf("describe disk: %w", err)
	}
	kind, longest := "unknown file system", -1
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) <= longest {
			continue
		}
		if f[1] == "/" || dir == f[1] || strings.HasPrefix(dir, f[1]+"/") {
			kind, longest = f[2], len(f[1])
		}
	}
	return kind, nil
}
