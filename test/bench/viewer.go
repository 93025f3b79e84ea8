package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// access is how a viewer connects to a program.
type access struct {
	addr    string
	request []byte // sent after the connection is made
	framing framing
	ready   string // the text whose arrival shows that the viewer follows the stream
	count   string // a text that each frame with tokens has exactly once, or empty
	first   int    // number of the first token it must receive
	buffer  int    // the kernel's receive buffer in bytes, or 0 for the default
	discard bool   // read and ignore everything, for the connections of producers
}

// viewer reads one connection and checks its tokens. Only one goroutine uses it.
type viewer struct {
	access
	fd       int
	isReady  bool
	next     int    // number of the next token
	rest     []byte // received bytes that may be the beginning of a token or of access.count
	frames   int    // texts of access.count
	bytes    int    // read from the socket, with all framing
	from, to time.Duration
	samples  *[]int64 // latencies in nanoseconds of the tokens that were sent between from and to
}

// open connects a viewer and sends its request. The socket blocks.
func open(a access) (*viewer, error) {
	addr, err := netip.ParseAddrPort(a.addr)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	v := &viewer{access: a, fd: fd, next: a.first}
	err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if a.buffer > 0 {
		// The buffer must be set before the connection is made, because TCP negotiates the window scale then.
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, a.buffer))
	}
	if err == nil {
		err = interrupted(func() error {
			return unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()})
		})
	}
	if err == nil && len(a.request) > 0 {
		err = writeAll(fd, a.request)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), unix.Close(fd))
	}
	return v, nil
}

// interrupted repeats a system call that a signal interrupted.
func interrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeAll writes b to a socket. If the socket doesn't block, it waits until there is space.
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case errors.Is(err, unix.EAGAIN):
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 1000)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		default:
			b = b[n:]
		}
	}
	return nil
}

// errEnded reports that the program has closed a viewer's connection.
var errEnded = errors.New("the connection ended")

// step reads once and processes what has arrived. It returns [errEnded] at the end of the connection.
func (v *viewer) step(buf []byte) error {
	n, err := unix.Read(v.fd, buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errEnded
	}
	now := time.Since(began)
	v.bytes += n
	if v.discard && v.isReady {
		return nil
	}
	answer, err := v.framing.decode(buf[:n], func(b []byte) error { return v.receive(b, now) })
	if err == nil && len(answer) > 0 {
		err = writeAll(v.fd, answer)
	}
	return err
}

// receive processes a piece of the stream without its framing.
func (v *viewer) receive(b []byte, now time.Duration) error {
	if !v.isReady && (v.ready == "" || bytes.Contains(b, []byte(v.ready))) {
		v.isReady = true
	}
	if v.discard {
		return nil
	}
	if len(v.rest) > 0 {
		v.rest = append(v.rest, b...)
		b = v.rest
	}
	incomplete, err := v.scan(b, now)
	v.rest = append(v.rest[:0], incomplete...)
	return err
}

// scan processes the tokens and counts the frames in b, which were read at the given time. It returns the end of b that may be the
// beginning of a token or of access.count. It doesn't parse JSON, because the load must cost less CPU than the program measured.
func (v *viewer) scan(b []byte, now time.Duration) ([]byte, error) {
	if v.count != "" {
		v.frames += bytes.Count(b, []byte(v.count))
	}
	for {
		i := bytes.IndexByte(b, mark)
		if i < 0 {
			return endOf(b, v.count), nil
		}
		if len(b) < i+tokenLen {
			return b[i:], nil
		}
		number, at, err := parseToken(b[i : i+tokenLen])
		if err != nil {
			return nil, err
		}
		if number != v.next {
			return nil, fmt.Errorf("received token %d instead of %d: a token was lost, duplicated or reordered", number, v.next)
		}
		if v.samples != nil && at >= v.from && at < v.to {
			*v.samples = append(*v.samples, int64(now-at))
		}
		v.next++
		b = b[i+tokenLen:]
	}
}

// endOf returns the end of b that may be the beginning of a text.
func endOf(b []byte, text string) []byte {
	for n := min(len(text)-1, len(b)); n > 0; n-- {
		if string(b[len(b)-n:]) == text[:n] {
			return b[len(b)-n:]
		}
	}
	return nil
}

// readUntil reads from a blocking socket until all tokens before number want have arrived.
func (v *viewer) readUntil(ctx context.Context, want int, buf []byte) error {
	limit := unix.NsecToTimeval(int64(arriveLimit))
	if err := unix.SetsockoptTimeval(v.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	deadline := time.Now().Add(arriveLimit)
	for v.next < want {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.step(buf); err != nil {
			return fmt.Errorf("viewer at token %d: %w", v.next, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("viewer at token %d of %d after %s", v.next, want, arriveLimit)
		}
	}
	return nil
}
