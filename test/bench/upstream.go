package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// upstream is a provider of models with the API of OpenAI. Each request for a completion contains the id of a conversation as its
// message. The answer is written by a producer.
type upstream struct {
	fd   int
	addr string
	done chan struct{}

	mu    sync.Mutex
	calls map[string]int // sockets whose request was read, by conversation
	err   error
}

// startUpstream listens for requests until close.
func startUpstream() (*upstream, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, 4096)
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("upstream: %w", err), unix.Close(fd))
	}
	u := &upstream{fd: fd, addr: fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), done: make(chan struct{}), calls: map[string]int{}}
	go u.run()
	return u, nil
}

// run accepts connections and reads their requests, one after another. The gateway sends a request in one write.
func (u *upstream) run() {
	defer close(u.done)
	for {
		fd, _, err := unix.Accept4(u.fd, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return // closed
		}
		conversation, err := readCall(fd)
		if err == nil {
			err = writeAll(fd, []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"))
		}
		u.mu.Lock()
		u.err = errors.Join(u.err, err)
		u.calls[conversation] = fd
		u.mu.Unlock()
	}
}

// called matches the id of a conversation in a request.
var called = regexp.MustCompile(`bench-\d{4}`)

// readCall reads a request up to the end of its JSON and returns the conversation's id.
func readCall(fd int) (string, error) {
	limit := unix.NsecToTimeval(int64(arriveLimit))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return "", err
	}
	var request []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return "", fmt.Errorf("request of the gateway: %w after %q", errors.Join(err, errEnded), request)
		}
		request = append(request, buf[:n]...)
		if _, body, ok := bytes.Cut(request, []byte("\r\n\r\n")); ok && bytes.HasSuffix(bytes.TrimSpace(body), []byte("}")) {
			if id := called.Find(body); id != nil {
				return string(id), nil
			}
		}
	}
}

// take waits for the calls of n conversations and returns a producer for each.
func (u *upstream) take(ctx context.Context, c *crowd, n int) ([]*producer, error) {
	var err error
	arrived := func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		err = u.err
		return len(u.calls) >= n || err != nil
	}
	if aerr := c.await(ctx, arrived); aerr != nil || err != nil {
		return nil, errors.Join(aerr, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	producers := make([]*producer, n)
	for i := range producers {
		fd, ok := u.calls[conversationID(i)]
		if !ok {
			return nil, fmt.Errorf("the gateway didn't call the agent for %s", conversationID(i))
		}
		// The crowd closes the socket.
		err := c.register(&viewer{access: access{discard: true, framing: plain{}}, fd: fd, isReady: true})
		if err != nil {
			return nil, err
		}
		producers[i] = &producer{fd: fd, frame: chunked, prefix: chatPrefix, suffix: chatSuffix}
	}
	return producers, nil
}

// close ends the listener. The connections belong to the crowd.
func (u *upstream) close() error {
	err := unix.Shutdown(u.fd, unix.SHUT_RDWR)
	select {
	case <-u.done:
	case <-time.After(stopLimit):
		return errors.New("the upstream did not end")
	}
	return errors.Join(err, unix.Close(u.fd))
}
