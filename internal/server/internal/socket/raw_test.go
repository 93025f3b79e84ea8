package socket_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/server/servertest"
)

const handshake = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// client is a client without a library.
type client struct {
	net.Conn
	*bufio.Reader
	cause chan error // of the server's end
}

func (c *client) Read(b []byte) (int, error) { return c.Reader.Read(b) }

// serveRaw runs test with a client that has sent early directly behind its handshake, in virtual time. The server echoes messages.
func serveRaw(t *testing.T, first func(*socket.Conn) error, early []byte, test func(*client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := servertest.Listen()
		c := &client{cause: make(chan error, 1)}
		hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, ok := socket.Accept(w, r, socket.Options{Stall: stall, ReadLimit: 200_000})
			if !ok {
				t.Error("the handshake failed")
				return
			}
			conn.Serve(&handler{
				begin: func() error {
					if first == nil {
						return nil
					}
					return first(conn)
				},
				frame: func(b []byte, err error) error {
					if errors.Is(err, socket.ErrBinary) {
						return conn.Write([]byte("binary"))
					}
					return conn.Write(b)
				},
				end: func(cause error) { c.cause <- cause },
			})
		})}
		go func() { _ = hs.Serve(network) }()
		conn, err := network.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Conn, c.Reader = conn, bufio.NewReader(conn)
		go func() { _, _ = conn.Write(append([]byte(handshake), early...)) }()
		res, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if accept := res.Header.Get("Sec-WebSocket-Accept"); res.StatusCode != http.StatusSwitchingProtocols || accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Fatal(res.Status, accept)
		}
		test(c)
		_ = conn.Close()
		synctest.Wait()
		_ = hs.Close()
	})
}

// clientFrame returns a masked frame.
func clientFrame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = append(b, 0x80|126, byte(n>>8), byte(n))
	default:
		b = append(b, 0x80|127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	b = append(b, 1, 2, 3, 4)
	for i := range len(payload) {
		b = append(b, payload[i]^byte(1+i%4))
	}
	return b
}

// serverFrame returns a frame of the server.
func serverFrame(first byte, payload string) string {
	switch n := len(payload); {
	case n < 126:
		return string([]byte{first, byte(n)}) + payload
	case n < 1<<16:
		return string([]byte{first, 126, byte(n >> 8), byte(n)}) + payload
	default:
		return string([]byte{first, 127, 0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + payload
	}
}

// exchange is the bytes of a client, and those that a server answers up to the end of the connection.
type exchange struct {
	in   []byte
	want string
}

func exchanges() map[string]exchange {
	const text, ping, pong, closed = 0x81, 0x89, 0x8A, 0x88
	frames := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	bye := clientFrame(closed, "\x03\xe8bye")
	long := strings.Repeat("long ", 20_000)
	return map[string]exchange{
		"texts":          {frames(clientFrame(text, "one"), clientFrame(text, ""), bye), serverFrame(text, "one") + serverFrame(text, "") + serverFrame(closed, "\x03\xe8bye")},
		"long text":      {frames(clientFrame(text, long), bye), serverFrame(text, long) + serverFrame(closed, "\x03\xe8bye")},
		"medium text":    {frames(clientFrame(text, long[:1000]), bye), serverFrame(text, long[:1000]) + serverFrame(closed, "\x03\xe8bye")},
		"binary":         {frames(clientFrame(0x82, "one"), clientFrame(closed, "")), serverFrame(text, "binary") + serverFrame(closed, "")},
		"ping":           {frames(clientFrame(ping, "payload"), clientFrame(pong, "unasked"), clientFrame(closed, "\x13\x87")), serverFrame(pong, "payload") + serverFrame(closed, "\x13\x87")},
		"ping between":   {frames(clientFrame(0x01, "on"), clientFrame(ping, ""), clientFrame(0x80, "e"), bye), serverFrame(pong, "") + serverFrame(text, "one") + serverFrame(closed, "\x03\xe8bye")},
		"after a close":  {frames(bye, clientFrame(text, "ignored")), serverFrame(closed, "\x03\xe8bye")},
		"not masked":     {[]byte("\x81\x01x"), serverFrame(closed, "\x03\xeaframe is not masked")},
		"half a code":    {clientFrame(closed, "x"), serverFrame(closed, "\x03\xeahalf a close code")},
		"invalid code":   {clientFrame(closed, "\x03\xed"), serverFrame(closed, "\x03\xeainvalid close code")},
		"invalid reason": {clientFrame(closed, "\x03\xe8\xff"), serverFrame(closed, "\x03\xefclose reason is not UTF-8")},
		"invalid text":   {frames(clientFrame(text, "\xff"), clientFrame(text, "ignored")), serverFrame(closed, "\x03\xeftext is not UTF-8")},
		"too large":      {clientFrame(text, strings.Repeat("x", 200_001)), serverFrame(closed, "\x03\xf1message is too large")},
	}
}

// run sends the client's bytes in pieces and checks the answer.
func (e exchange) run(t *testing.T, c *client, name string, chunk int) {
	t.Helper()
	go func() {
		for piece := range slices.Chunk(e.in, chunk) {
			if _, err := c.Write(piece); err != nil {
				return // the server has closed the connection
			}
		}
	}()
	got, err := io.ReadAll(c)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil // the server closes the connection after the client's close frame, whatever follows
	}
	if err != nil || string(got) != e.want {
		t.Errorf("%s: got %.200q (%v), want %.200q", name, got, err, e.want)
	}
	if cause := <-c.cause; !errors.Is(cause, socket.ErrDisconnected) {
		t.Error(cause)
	}
}

func TestExchanges(t *testing.T) {
	for name, test := range exchanges() {
		for _, chunk := range []int{1, 7, len(test.in)} {
			if chunk == 1 && len(test.in) > 10_000 {
				continue // it takes long
			}
			serveRaw(t, nil, nil, func(c *client) { test.run(t, c, fmt.Sprintf("%s by %d", name, chunk), chunk) })
		}
	}
}

// Frames that a client sends right behind its handshake are not lost.
func TestEarlyFrames(t *testing.T) {
	in := slices.Concat(clientFrame(0x81, "first"), clientFrame(0x81, "second"), clientFrame(0x88, ""))
	first := func(c *socket.Conn) error {
		b, err := c.ReadFirst(time.Second, errEnd)
		if err == nil {
			err = c.Write(append([]byte("is "), b...))
		}
		return err
	}
	for cut := range len(in) {
		serveRaw(t, first, in[:cut], func(c *client) {
			go func() { _, _ = c.Write(in[cut:]) }()
			got, err := io.ReadAll(c)
			if want := serverFrame(0x81, "is first") + serverFrame(0x81, "second") + serverFrame(0x88, ""); err != nil || string(got) != want {
				t.Errorf("cut at %d: got %q (%v), want %q", cut, got, err, want)
			}
		})
	}
}

// A pong that answers no ping doesn't keep a connection.
func TestWrongPong(t *testing.T) {
	ping := func(c *socket.Conn) error {
		c.Heartbeat(socket.NewWheel(20*time.Second, nil))
		return nil
	}
	serveRaw(t, ping, clientFrame(0x8A, "12345678"), func(c *client) {
		start := time.Now()
		go func() {
			for range 3 {
				time.Sleep(20 * time.Second)
				_, _ = c.Write(clientFrame(0x8A, "12345678"))
			}
		}()
		_, _ = io.Copy(io.Discard, c)
		if took := time.Since(start); took < 20*time.Second+stall || took > 22*time.Second+stall {
			t.Errorf("disconnected after %v", took)
		}
		<-c.cause
	})
}

// A panic of a handler ends its connection only.
func TestPanic(t *testing.T) {
	serveRaw(t, func(*socket.Conn) error { panic("of a test") }, nil, func(c *client) {
		if cause := <-c.cause; !errors.Is(cause, socket.ErrPanic) || !strings.Contains(cause.Error(), "of a test") {
			t.Error(cause)
		}
	})
}

// A client that doesn't answer the close frame is cut after the limit.
func TestCloseUnanswered(t *testing.T) {
	serveRaw(t, nil, nil, func(c *client) {
		start := time.Now()
		go func() { _, _ = c.Write([]byte("\x81\x01")) }()
		if _, err := io.ReadAll(c); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("cut after %v", took)
		}
	})
}
