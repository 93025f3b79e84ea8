// Starting a program with a separate process group, and ending the whole group.

package process

import (
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"runtime"
	"sync"
	"time"
)

// leftover is how long Read waits after the process ended if its pipes stay open, because a child that left the process group still
// has them.
const leftover = time.Second

// Process is a child with its process group. A goroutine reaps it, and ends when ExitDone is closed.
type Process struct {
	Stdin  *os.File
	Stdout *pipe
	Stderr *pipe

	cmd *osexec.Cmd
	// killAfter is the time between SIGTERM and SIGKILL.
	killAfter time.Duration

	exitDone chan struct{} // closed when the process was reaped and its group killed
	// err is nil for exit status 0. It is set before exitDone is closed, and read only after that.
	err error

	mu     sync.Mutex
	reaped bool        // its id may belong to another process
	kill   *time.Timer // set by Stop
}

// Program describes what to start.
type Program struct {
	Path    string   // of the executable
	Command []string // its name and arguments
	Env     []string // the complete environment
	Dir     string   // working directory; empty means the gateway's
	// KillAfter is the time between SIGTERM and SIGKILL.
	KillAfter time.Duration
}

// Start starts a program. The caller must call Close when the process has ended.
//
// A separate goroutine starts the process and waits for it, locked to its thread: on Linux, the kernel kills the
// child when the thread that started it ends, and Go may end other threads at any time.
func Start(g Program) (*Process, error) {
	p := &Process{killAfter: g.KillAfter, exitDone: make(chan struct{})}
	p.cmd = &osexec.Cmd{Path: g.Path, Args: g.Command, Env: g.Env, Dir: g.Dir, SysProcAttr: groupAttr()}
	var files []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files...)
			return nil, err
		}
		files = append(files, r, w)
	}
	p.cmd.Stdin, p.Stdin = files[0], files[1]
	p.Stdout, p.cmd.Stdout = &pipe{f: files[2], exitDone: p.exitDone}, files[3]
	p.Stderr, p.cmd.Stderr = &pipe{f: files[4], exitDone: p.exitDone}, files[5]

	startErr := make(chan error)
	go func() {
		// Linux kills the child when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := startChild(p)
		startErr <- err
		if err == nil {
			p.wait()
		}
	}()
	err := <-startErr
	closeAll(files[0], files[3], files[5])
	if err != nil {
		closeAll(files[1], files[2], files[4])
		return nil, err
	}
	return p, nil
}

// wait reaps the process and kills the rest of its group. The group has the id of the process, which the system may
// reuse once the process is reaped. So on Linux the group is killed while the process is a zombie. On other systems
// the kill follows at once, under the lock that Stop and Kill need.
func (p *Process) wait() {
	if awaitExit(p.cmd.Process.Pid) {
		p.mu.Lock()
		killGroup(p.cmd.Process) // before its id can be reused
		p.err = p.cmd.Wait()
	} else {
		p.err = p.cmd.Wait()
		p.mu.Lock()
		killGroup(p.cmd.Process)
	}
	p.reaped = true
	if p.kill != nil {
		p.kill.Stop()
	}
	p.mu.Unlock()
	reapOrphans(p)
	close(p.exitDone)
	p.Stdout.limitRead()
	p.Stderr.limitRead()
}

// Await waits until the process has ended, at most for d.
func (p *Process) Await(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exitDone:
	case <-t.C:
	}
}

// ExitDone returns a channel that is closed when the process was reaped and its group killed.
func (p *Process) ExitDone() <-chan struct{} { return p.exitDone }

// Err returns how the process ended. It is nil for exit status 0, and only valid after ExitDone is closed.
func (p *Process) Err() error { return p.err }

// Pid returns the id of the process, which is also that of its group while it runs.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool { return isClosed(p.exitDone) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Stop sends SIGTERM, and SIGKILL after KillAfter. A second call does nothing.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Stdout.GiveUp()
	if p.reaped || p.kill != nil {
		return
	}
	endGroup(p.cmd.Process)
	p.kill = time.AfterFunc(p.killAfter, p.Kill)
}

// Kill kills the process and its group at once.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd.Process)
	}
}

// WriteInput writes the input and closes it. Errors are ignored, because a process need not read all of its input.
func (p *Process) WriteInput(b []byte) {
	_, _ = p.Stdin.Write(b)
	_ = p.Stdin.Close()
}

// Close closes the pipes of a process that has ended. waitReaders must wait for the goroutines that use them. A child
// that left the group may have standard error open, so reading it is given up after a while; otherwise Close might
// never return.
func (p *Process) Close(waitReaders func()) {
	_ = p.Stdin.Close() // which ends WriteInput
	_ = p.Stdout.f.Close()
	timer := time.AfterFunc(leftover, p.Stderr.GiveUp)
	waitReaders()
	timer.Stop()
	_ = p.Stderr.f.Close()
}

// pipe is the reading end of an output. After the process has ended, Read returns io.EOF when no data arrives for a while, even
// if another process has the other end open.
type pipe struct {
	f        *os.File
	exitDone <-chan struct{}

	mu          sync.Mutex
	isAbandoned bool // set by GiveUp
}

// Read implements [io.Reader].
func (r *pipe) Read(b []byte) (int, error) {
	if isClosed(r.exitDone) {
		r.limitRead()
	}
	n, err := r.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.isAbandoned { // after GiveUp, the deadline must not look like the end of the output
			err = io.EOF
		}
	}
	return n, err
}

// limitRead sets a deadline for the next read, after the process has ended.
func (r *pipe) limitRead() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isAbandoned {
		_ = r.f.SetReadDeadline(time.Now().Add(leftover)) // if pipes have no deadlines, the output ends by itself
	}
}

// GiveUp makes pending and later reads fail.
func (r *pipe) GiveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isAbandoned = true
	_ = r.f.SetReadDeadline(time.Unix(1, 0))
}
