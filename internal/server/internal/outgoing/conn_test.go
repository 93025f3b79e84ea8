package outgoing

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

const stall = time.Minute

// pipe is a system that takes as many bytes of each write as the test decides.
type pipe struct {
	mu     sync.Mutex
	room   func(n int) int // how many of n bytes are taken, possibly 0
	got    []byte
	writes int
	armed  bool
	closed bool
	fault  error
}

func (p *pipe) TryRead([]byte) (int, error) { return 0, netpoll.ErrBlocked }

func (p *pipe) TryWrite(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	if p.fault != nil {
		return 0, p.fault
	}
	n := p.room(len(b))
	p.got = append(p.got, b[:n]...)
	if n == 0 && len(b) > 0 {
		return 0, netpoll.ErrBlocked
	}
	return n, nil
}

func (p *pipe) await(room bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = room
	return nil
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// owner calls those of its functions that are not nil.
type owner struct {
	events func(netpoll.Events)
	ready  func()
	failed func(error)
}

func (o owner) OnEvents(e netpoll.Events) {
	if o.events != nil {
		o.events(e)
	}
}

func (o owner) OnReady() {
	if o.ready != nil {
		o.ready()
	}
}

func (o owner) OnFailed(err error) {
	if o.failed != nil {
		o.failed(err)
	}
}

func all(n int) int { return n }

func none(int) int { return 0 }

// frame returns a frame that shows where it begins and ends.
func frame(serial byte, size int) []byte {
	return append(append([]byte{'<', serial}, bytes.Repeat([]byte{'.'}, size)...), '>')
}

// FuzzTryWrite plays frames and events in any order, with writes that take any number of bytes. The bytes at the other end must be
// those of the frames that were taken, whole and in order, and each refusal must be followed by one call of ready.
func FuzzTryWrite(f *testing.F) {
	f.Add([]byte{0, 5, 1, 0, 3, 0, 1, 2, 0, 1, 9, 1, 200})
	f.Add([]byte{10, 0, 10, 0, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		next := func() int {
			if len(script) == 0 {
				return 0
			}
			b := script[0]
			script = script[1:]
			return int(b)
		}
		p := &pipe{room: func(n int) int { return min(n, next()%8) }}
		calls := 0
		c := &Conn{system: p, stall: stall, owner: owner{ready: func() { calls++ }, failed: func(err error) { t.Error(err) }}}
		var want []byte
		refused := false // since the last call of ready
		check := func() {
			if calls > 1 || calls == 1 && !refused {
				t.Fatalf("%d calls of ready", calls)
			}
			if calls == 1 {
				refused, calls = false, 0
			}
			if p.armed != c.full {
				t.Fatal("the system's registration is not that of the connection")
			}
			if !c.full && refused {
				t.Fatal("ready was not called")
			}
		}
		for serial := byte(0); len(script) > 0; serial++ {
			if next()%2 == 0 {
				b := frame(serial, next()%16)
				state, err := c.TryWrite(b)
				if err != nil {
					t.Fatal(err)
				}
				if state != Busy {
					want = append(want, b...)
				}
				refused = refused || state != Complete
			} else {
				c.writable()
			}
			check()
			if !bytes.HasPrefix(want, p.got) {
				t.Fatalf("got %q of %q", p.got, want)
			}
		}
		p.room = all
		c.writable()
		check()
		if !bytes.Equal(p.got, want) {
			t.Fatalf("got %q, want %q", p.got, want)
		}
		c.Close()
	})
}

// TestConcurrent has several goroutines of each kind write to one connection whose writes take random numbers of bytes.
func TestConcurrent(t *testing.T) {
	const writers, frames = 4, 300
	p := &pipe{room: func(n int) int { return rand.IntN(min(n, 9) + 1) }}
	ready := make(chan struct{}, 1)
	c := &Conn{
		system: p, stall: stall, owner: owner{
			failed: func(err error) { t.Error(err) },
			ready: func() {
				select {
				case ready <- struct{}{}:
				default:
				}
			},
		},
	}
	stop := make(chan struct{})
	var events, tasks sync.WaitGroup
	events.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.writable()
			}
		}
	})
	tasks.Go(func() {
		for i := range frames {
			for {
				state, err := c.TryWrite(frame('t', i%30))
				if err != nil {
					t.Error(err)
				}
				if state != Complete {
					<-ready
				}
				if state != Busy {
					break
				}
			}
		}
	})
	for w := range writers {
		tasks.Go(func() {
			for i := range frames {
				if err := c.Write(frame('a'+byte(w), i%30)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tasks.Wait()
	close(stop)
	events.Wait()
	counts := map[byte]int{}
	for rest := p.got; len(rest) > 0; {
		end := bytes.IndexByte(rest, '>')
		if end < 2 {
			t.Fatalf("a broken frame: %q", rest[:min(len(rest), 50)])
		}
		serial := rest[1]
		if !bytes.Equal(rest[:end+1], frame(serial, counts[serial]%30)) {
			t.Fatalf("frame %d of %c is %q", counts[serial], serial, rest[:end+1])
		}
		counts[serial]++
		rest = rest[end+1:]
	}
	if len(counts) != writers+1 {
		t.Fatalf("frames of %d goroutines", len(counts))
	}
	for serial, n := range counts {
		if n != frames {
			t.Errorf("%d frames of %c", n, serial)
		}
	}
	c.Close()
}

// A Write that waits goes before TryWrite, and ready is called after the last Write.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{room: func(int) int { return 1 }}
		calls := 0
		c := &Conn{system: p, stall: stall, owner: owner{ready: func() { calls++ }}}
		if state, err := c.TryWrite([]byte("one ")); state != Pending || err != nil {
			t.Fatal(state, err)
		}
		done := make(chan error, 2)
		for _, s := range []string{"two ", "three "} {
			go func() { done <- c.Write([]byte(s)) }()
			synctest.Wait()
		}
		if state, err := c.TryWrite([]byte("never")); state != Busy || err != nil {
			t.Error(state, err)
		}
		for range 3 {
			if calls > 0 {
				t.Error("ready is called before the waiting writes")
			}
			c.writable()
			synctest.Wait()
		}
		if string(p.got) != "one two three " || calls != 1 {
			t.Errorf("%q, %d calls", p.got, calls)
		}
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
		p.room = all
		p.writes = 0
		if state, err := c.TryWrite([]byte("four")); state != Complete || err != nil || p.writes != 1 {
			t.Error(state, err, p.writes)
		}
		c.Close()
	})
}

// A connection ends when its client accepts nothing for the limit, and not if it accepts a byte now and then.
func TestStall(t *testing.T) {
	for name, start := range map[string]func(c *Conn){
		"refused": func(c *Conn) { _, _ = c.TryWrite([]byte("refused")) },
		"write":   func(c *Conn) { go func() { _ = c.Write([]byte("write")) }() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipe{room: none}
				failures := make(chan error, 2)
				c := &Conn{system: p, stall: stall, owner: owner{failed: func(err error) { failures <- err }}}
				began := time.Now()
				start(c)
				if err := <-failures; !errors.Is(err, errStalled) || time.Since(began) != stall || !p.closed {
					t.Errorf("%v after %v, closed %t", err, time.Since(began), p.closed)
				}
				if _, err := c.TryWrite(nil); !errors.Is(err, errStalled) {
					t.Error(err)
				}
				if err := c.Write(nil); !errors.Is(err, errStalled) {
					t.Error(err)
				}
				c.Close()
				synctest.Wait()
				if len(failures) > 0 {
					t.Error("it failed twice")
				}
			})
		})
	}
	t.Run("slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &pipe{}
			taken := false
			p.room = func(int) int {
				taken = !taken
				if taken {
					return 1
				}
				return 0
			}
			c := &Conn{system: p, stall: stall, owner: owner{failed: func(err error) { t.Error(err) }}}
			if state, err := c.TryWrite([]byte("slowly")); state != Pending || err != nil {
				t.Fatal(state, err)
			}
			taken = false
			for range 5 {
				time.Sleep(stall - time.Second)
				c.writable()
			}
			if string(p.got) != "slowly" {
				t.Errorf("%q", p.got)
			}
			time.Sleep(2 * stall)
			c.Close()
		})
	})
}

// Every method returns the error of a connection that fails or is closed.
func TestEnds(t *testing.T) {
	fault := errors.New("injected fault")
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]struct {
			by   func(c *Conn, p *pipe)
			want error
		}{
			"closed": {func(c *Conn, _ *pipe) { c.Close(); c.Close() }, errClosed},
			"fault":  {func(c *Conn, p *pipe) { p.fault = fault; c.writable() }, fault},
		} {
			p := &pipe{room: func(int) int { return 1 }}
			failures := 0
			c := &Conn{system: p, stall: stall, owner: owner{ready: func() { t.Error("ready after the end") }, failed: func(error) { failures++ }}}
			errs := make(chan error, 2)
			for range 2 {
				go func() { errs <- c.Write([]byte("xx")) }()
				synctest.Wait()
			}
			if state, err := c.TryWrite([]byte("xx")); state != Busy || err != nil {
				t.Error(name, state, err)
			}
			p.room = none
			end.by(c, p)
			for range 2 {
				if err := <-errs; !errors.Is(err, end.want) {
					t.Error(name, err)
				}
			}
			if !p.closed || name == "closed" && failures > 0 {
				t.Errorf("%s: closed %t, %d failures", name, p.closed, failures)
			}
			c.writable()
		}
		p := &pipe{fault: fault}
		c := &Conn{system: p, stall: stall, owner: owner{failed: func(error) { t.Error("failed besides the returned error") }}}
		if _, err := c.TryWrite([]byte("x")); !errors.Is(err, fault) || !p.closed {
			t.Error(err, p.closed)
		}
		p = &pipe{fault: fault}
		c.system, c.err = p, nil
		if err := c.Write([]byte("x")); !errors.Is(err, fault) || !p.closed {
			t.Error(err, p.closed)
		}
	})
}

// After the last frame, no other frame is sent, whether it was waiting before or comes later.
func TestWriteLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{room: none}
		c := &Conn{system: p, stall: stall, owner: owner{ready: func() { t.Error("ready after the last frame") }}}
		done := make(chan error, 3)
		go func() { done <- c.Write([]byte("first ")) }()
		synctest.Wait()
		go func() { done <- c.WriteLast([]byte("last")) }()
		synctest.Wait()
		go func() { done <- c.Write([]byte("late")) }()
		synctest.Wait()
		if state, err := c.TryWrite([]byte("refused")); state != Busy || err != nil {
			t.Error(state, err)
		}
		p.room = all
		c.writable()
		var refused int
		for range 3 {
			if err := <-done; errors.Is(err, errClosed) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if string(p.got) != "first last" || refused != 1 {
			t.Errorf("%q, %d refused", p.got, refused)
		}
		if _, err := c.TryWrite([]byte("x")); !errors.Is(err, errClosed) {
			t.Error(err)
		}
		if err := errors.Join(c.Write([]byte("x")), c.WriteLast([]byte("x"))); !errors.Is(err, errClosed) || string(p.got) != "first last" {
			t.Error(err, string(p.got))
		}
		c.Close()
	})
}
