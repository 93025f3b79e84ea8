package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// childEnv tells this program to be one of its own children. What is measured is a process of its own, so that its CPU
// and memory can be told from those of the load.
const childEnv = "LEAT_BENCH_CHILD"

// process is a program under measurement.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer // a child of ours ends when this closes
	addr string
	done chan struct{}
	err  error // of its end; to be read after done
}

// children by name: each serves on a listener of its own until its standard input ends.
var children = map[string]func(ctx context.Context, args []string, ready func(addr string)) error{
	"relay": relay,
	"fan":   fan,
	"blob":  blob,
}

// childMain runs this process as a child, if it is one, and reports whether it was.
func childMain() (ran bool, err error) {
	name, ok := os.LookupEnv(childEnv)
	if !ok {
		return false, nil
	}
	fn := children[name]
	if fn == nil {
		return true, fmt.Errorf("no child is named %q", name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err = fn(ctx, os.Args[1:], func(addr string) {
		_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"addr": addr})
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return true, err
}

// startChild starts this program again, as the named child, and waits until it listens.
func startChild(name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	var hello struct{ Addr string }
	herr := json.NewDecoder(bufio.NewReader(out)).Decode(&hello)
	p := &process{cmd: cmd, in: in, addr: hello.Addr, done: make(chan struct{})}
	go p.wait()
	if herr != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, herr), p.stop())
	}
	return p, nil
}

func (p *process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	if p.in != nil {
		_ = p.in.Close()
	} else {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(stopLimit):
		err := p.cmd.Process.Kill()
		<-p.done
		return errors.Join(fmt.Errorf("%s did not stop in %s", p.cmd.Path, stopLimit), err)
	}
}

const stopLimit = 20 * time.Second

// usage is what a process has used up.
type usage struct {
	user, system time.Duration
	rss          int64 // bytes
}

func (u usage) cpu() time.Duration { return u.user + u.system }

func (u usage) since(v usage) usage {
	return usage{u.user - v.user, u.system - v.system, u.rss - v.rss}
}

// clockTick is the unit of times in /proc, which Linux fixes for user space at 100 a second.
const clockTick = 10 * time.Millisecond

// usageOf reads a living process's usage; its CPU time is exact to 10 ms.
func usageOf(pid int) (u usage, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	// The name in brackets may hold anything; the fields after it are counted from 3.
	_, rest, ok := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 22 {
		return u, fmt.Errorf("usage of process %d: unexpected /proc/stat", pid)
	}
	var n [3]int64
	for i, at := range [3]int{11, 12, 21} { // utime, stime, rss
		if n[i], err = strconv.ParseInt(f[at], 10, 64); err != nil {
			return u, fmt.Errorf("usage of process %d: %w", pid, err)
		}
	}
	return usage{time.Duration(n[0]) * clockTick, time.Duration(n[1]) * clockTick, n[2] * int64(os.Getpagesize())}, nil
}

func (p *process) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }
