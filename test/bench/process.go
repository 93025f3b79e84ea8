package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childEnv is the environment variable that makes this program run as a child, with the child's name as its value. Baselines run in
// a separate process, so that their CPU time and memory can be separated from those of the load.
const childEnv = "LEAT_BENCH_CHILD"

// process is a program whose resource usage is measured.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser // standard input of a child, which ends when it is closed; nil for the gateway
	out    *json.Decoder  // standard output of a child
	addr   string
	second string        // a peer's address for viewers, if it has its own
	done   chan struct{} // closed when the process has ended
	err    error         // of the process; valid after done is closed
}

// children maps names to the functions of children. Each calls ready with the address of its listener and serves until ctx ends, which is at
// the end of its standard input.
var children = map[string]func(ctx context.Context, args []string, ready func(addr string)) error{
	"relay": relay,
	"fan":   fan,
	"blob":  blob,
}

// childMain runs the child named by childEnv. If that isn't set, it returns false, and the process continues as the benchmark. A child
// reports its address as JSON on standard output.
func childMain() (ran bool, err error) {
	name, ok := os.LookupEnv(childEnv)
	if !ok {
		return false, nil
	}
	fn := children[name]
	if fn == nil {
		return true, fmt.Errorf("unknown child %q", name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process
		answerMemory(os.Stdin, os.Stdout)
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

// startChild starts this program as the named child and waits until it listens. The child ends with this process at the latest, because its
// standard input is a pipe.
func startChild(name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	return startCommand(name, cmd)
}

// startCommand starts a program that reports its address and answers requests for its memory like a child of this program.
func startCommand(name string, cmd *exec.Cmd) (*process, error) {
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
	// The address is the child's first output. Decoding it waits until the child listens, or fails when it has ended.
	var hello struct{ Addr, Second string }
	p := &process{cmd: cmd, in: in, out: json.NewDecoder(out), done: make(chan struct{})}
	decodeErr := p.out.Decode(&hello)
	p.addr, p.second = hello.Addr, hello.Second
	go p.wait()
	if decodeErr != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, decodeErr), p.stop())
	}
	return p, nil
}

// wait is the goroutine of a process. It is the only caller of Cmd.Wait, so everything else waits for done.
func (p *process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// stop ends the process by closing its input or by an interrupt, and waits for it. After stopLimit it is killed.
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

// stopLimit is how long a process may take to end. The gateway ends its turns in the drain time of a second and then closes the
// journal.
const stopLimit = 20 * time.Second
