package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measure samples the process. Goroutines come from the gateway's metrics, the other values from /proc and the data folder.
func (p *program) measure(ctx context.Context) (sample, error) {
	p.mu.Lock()
	proc := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	s := sample{Process: p.count - 1, Age: time.Since(p.startedAt)}
	p.mu.Unlock()
	var err error
	if s.Memory, err = resident(filepath.Join(proc, "status")); err != nil {
		return s, err
	}
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return s, fmt.Errorf("descriptors: %w", err)
	}
	s.Descriptors = int64(len(fds))
	logs, err := filepath.Glob(filepath.Join(p.data, "*-wal"))
	if err != nil {
		return s, err
	}
	for _, l := range logs {
		info, err := os.Stat(l)
		if err != nil {
			return s, fmt.Errorf("write-ahead log: %w", err)
		}
		s.WAL += info.Size()
	}
	s.Goroutines, err = p.goroutines(ctx)
	return s, err
}

// resident returns the resident memory in bytes from a /proc/PID/status file.
func resident(status string) (int64, error) {
	b, err := os.ReadFile(status)
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	for line := range bytes.Lines(b) {
		if size, ok := strings.CutPrefix(string(line), "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("memory: no VmRSS")
}

func (p *program) goroutines(ctx context.Context) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(res.Body, 8<<20))
	for lines.Scan() {
		if count, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			return strconv.ParseInt(count, 10, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("metrics: no go_goroutines (%s)", res.Status), lines.Err())
}
