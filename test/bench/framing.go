// This file removes the framing of a connection: the chunks of HTTP and the frames of a WebSocket. The load reads tens of thousands of
// frames a second on the cores of the program measured, so net/http would cost too much.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// framing removes a connection's framing. decode calls payload for each piece of data in b. It returns bytes that must be sent to the
// peer, such as the answer to a ping.
type framing interface {
	decode(b []byte, payload func([]byte) error) (answer []byte, err error)
}

// plain is the framing of a connection without one.
type plain struct{}

func (plain) decode(b []byte, payload func([]byte) error) ([]byte, error) { return nil, payload(b) }

// response is the framing of an HTTP response. If it accepts a WebSocket, the frames of that follow.
type response struct {
	after []byte // sent when the response has arrived, such as a subscription

	head []byte // the header so far
	body framing
}

// maxHead limits the header of a response.
const maxHead = 8 << 10

func (r *response) decode(b []byte, payload func([]byte) error) ([]byte, error) {
	if r.body != nil {
		return r.body.decode(b, payload)
	}
	r.head = append(r.head, b...)
	end := bytes.Index(r.head, []byte("\r\n\r\n"))
	if end < 0 {
		if len(r.head) > maxHead {
			return nil, errors.New("the response has no end of its header")
		}
		return nil, nil
	}
	head, rest := bytes.ToLower(r.head[:end]), r.head[end+4:]
	switch {
	case bytes.HasPrefix(head, []byte("http/1.1 101")):
		r.body = &webSocket{}
	case !bytes.HasPrefix(head, []byte("http/1.1 2")):
		return nil, fmt.Errorf("response %q", r.head)
	case bytes.Contains(head, []byte("transfer-encoding: chunked")):
		r.body = &chunks{}
	default:
		r.body = plain{}
	}
	r.head = nil
	if err := payload(nil); err != nil { // the response itself may be what a connection waits for
		return nil, err
	}
	answer, err := r.body.decode(rest, payload)
	return append(r.after, answer...), err
}

// chunks is the framing of a chunked body.
type chunks struct {
	left  int    // bytes of the current chunk that haven't arrived
	line  []byte // an incomplete line between two chunks
	ended bool
}

func (c *chunks) decode(b []byte, payload func([]byte) error) ([]byte, error) {
	for len(b) > 0 {
		if c.left > 0 {
			n := min(c.left, len(b))
			if err := payload(b[:n]); err != nil {
				return nil, err
			}
			c.left -= n
			b = b[n:]
			continue
		}
		// The line feed after a chunk's data is an empty line here, which is skipped.
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			c.line = append(c.line, b...)
			return nil, nil
		}
		c.line = append(c.line, b[:i]...)
		b = b[i+1:]
		if line := bytes.TrimSpace(c.line); len(line) > 0 && !c.ended {
			size, err := strconv.ParseUint(string(line), 16, 31)
			if err != nil {
				return nil, fmt.Errorf("chunk: %w", err)
			}
			c.left, c.ended = int(size), size == 0
		}
		c.line = c.line[:0]
	}
	return nil, nil
}

// webSocket is the framing of a server's WebSocket frames.
type webSocket struct {
	head    []byte // an incomplete frame header
	code    byte   // of the current frame
	left    int    // bytes of the current frame that haven't arrived
	control []byte // payload of the current control frame
}

const (
	opClose = 8
	opPing  = 9
)

func (w *webSocket) decode(b []byte, payload func([]byte) error) (answer []byte, err error) {
	for len(b) > 0 {
		if w.left == 0 {
			w.head = append(w.head, b[0])
			b = b[1:]
			if !w.begin() {
				continue
			}
		}
		n := min(w.left, len(b))
		if w.code < opClose {
			if err := payload(b[:n]); err != nil {
				return nil, err
			}
		} else {
			w.control = append(w.control, b[:n]...)
		}
		b = b[n:]
		if w.left -= n; w.left > 0 {
			continue
		}
		switch w.code {
		case opClose:
			return nil, fmt.Errorf("the server closed the WebSocket: %q", w.control)
		case opPing:
			// A client's frames are masked. A mask of zeros leaves the payload unchanged.
			answer = append(answer, 0x8a, 0x80|byte(len(w.control)), 0, 0, 0, 0)
			answer = append(answer, w.control...)
		}
		w.control = w.control[:0]
	}
	return answer, nil
}

// begin parses the header of a frame and reports whether it is complete.
func (w *webSocket) begin() bool {
	if len(w.head) < 2 {
		return false
	}
	size, long := int(w.head[1]&0x7f), 0
	switch size {
	case 126:
		long = 2
	case 127:
		long = 8
	}
	if len(w.head) < 2+long {
		return false
	}
	if long > 0 {
		size = 0
		for _, c := range w.head[2:] {
			size = size<<8 | int(c)
		}
	}
	w.code, w.left, w.head = w.head[0]&0x0f, size, w.head[:0]
	return true
}

// textFrame returns a client's WebSocket frame with a text of at most 125 bytes or, with the longer header, 64 KiB.
func textFrame(text string) []byte {
	b := []byte{0x81}
	if n := len(text); n < 126 {
		b = append(b, 0x80|byte(n))
	} else {
		b = append(b, 0x80|126, byte(n>>8), byte(n))
	}
	return append(append(b, 0, 0, 0, 0), text...)
}

// upgrade returns the request for a WebSocket.
func upgrade(addr, path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
}
