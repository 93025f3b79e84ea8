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

// leftover is how long what a process has left behind is waited for when its pipes stay open: something that it started
// has left its process group.
const leftover = time.Second

// Process is a child with its process group. It is waited for by a goroutine of its own, which ends when Ended is closed.
type Process struct {
	Stdin  *os.File
	Stdout *Pipe
	Stderr *Pipe

	cmd *osexec.Cmd
	// killAfter is how long it may take to end once it was told to.
	killAfter time.Duration

	ended chan struct{} // closed when the process was waited for and its group is gone
	err   error         // how it ended; nil is exit status 0. Set before ended is closed

	mu     sync.Mutex
	reaped bool        // its id may belong to somebody else
	kill   *time.Timer // set once it was told to end
}

// Program is what is started.
type Program struct {
	Path    string   // of the file
	Command []string // its name and its arguments
	Env     []string // all that it sees
	Dir     string   // in which it runs; empty is that of the gateway
	// KillAfter is how long it may take to end once it was told to.
	KillAfter time.Duration
}

// Start starts a program. Whoever does calls Close once it has ended.
func Start(g Program) (*Process, error) {
	p := &Process{killAfter: g.KillAfter, ended: make(chan struct{})}
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
	p.Stdout, p.cmd.Stdout = &Pipe{f: files[2], ended: p.ended}, files[3]
	p.Stderr, p.cmd.Stderr = &Pipe{f: files[4], ended: p.ended}, files[5]

	started := make(chan error)
	go func() {
		// Linux ends the child when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := begin(p)
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	err := <-started
	closeAll(files[0], files[3], files[5])
	if err != nil {
		closeAll(files[1], files[2], files[4])
		return nil, err
	}
	return p, nil
}

// wait waits for the process, and ends what it leaves of its group.
func (p *Process) wait() {
	if awaitExit(p.cmd.Process.Pid) {
		p.mu.Lock()
		killGroup(p.cmd.Process) // while its id is still its own
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
	over(p)
	close(p.ended)
	p.Stdout.bound()
	p.Stderr.bound()
}

// Await waits until the process has ended, and no longer than d.
func (p *Process) Await(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
}

// Ended is closed when the process was waited for and its group is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err is how the process ended, once it has; nil is exit status 0.
func (p *Process) Err() error { return p.err }

// Pid is its id, and that of its group while it runs.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Stop tells the process to end, and makes it end a while later. A second call does nothing.
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

// Kill makes the process and its group end at once.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd.Process)
	}
}

// Feed writes the input and ends it. A process that doesn't read all of it has no need of it.
func (p *Process) Feed(b []byte) {
	_, _ = p.Stdin.Write(b)
	_ = p.Stdin.Close()
}

// Close lets go of the pipes, once the process has ended. rest returns when those who use them have ended too.
func (p *Process) Close(rest func()) {
	_ = p.Stdin.Close() // which ends Feed
	_ = p.Stdout.f.Close()
	late := time.AfterFunc(leftover, p.Stderr.GiveUp)
	rest()
	late.Stop()
	_ = p.Stderr.f.Close()
}

// Pipe is the reading end of an output. After the process has ended it ends too, whoever still holds the other end, as
// soon as nothing comes for a while.
type Pipe struct {
	f     *os.File
	ended <-chan struct{}

	mu    sync.Mutex
	given bool // nobody wants the rest
}

// Read implements [io.Reader].
func (r *Pipe) Read(b []byte) (int, error) {
	select {
	case <-r.ended:
		r.bound()
	default:
	}
	n, err := r.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.given { // else that is no end of the output
			err = io.EOF
		}
	}
	return n, err
}

// bound bounds the next read, now that the process has ended.
func (r *Pipe) bound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.given {
		_ = r.f.SetReadDeadline(time.Now().Add(leftover)) // where pipes have none, what is left ends by itself
	}
}

// GiveUp ends the reading.
func (r *Pipe) GiveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = true
	_ = r.f.SetReadDeadline(time.Unix(1, 0))
}
