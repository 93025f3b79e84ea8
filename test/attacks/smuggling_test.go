package attacks

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// statuses sends bytes on one connection and returns the statuses of all answers until the gateway closes it. Leftover
// requests in the bytes are those that a proxy in front took for a body.
func statuses(t *testing.T, request string) (all []int) {
	t.Helper()
	c := dial(t)
	if _, err := io.WriteString(c, strings.NewReplacer("ADDR", gate.addr, "TOKEN", token).Replace(request)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF && !strings.Contains(err.Error(), "reset") {
				t.Fatalf("the connection stays open after %v: %v", all, err)
			}
			return all
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		all = append(all, res.StatusCode)
	}
}

// A proxy and the gateway that disagree about where a request ends must not share a connection after it.
func TestSmuggling(t *testing.T) {
	const (
		head = "POST /api/conversations HTTP/1.1\r\nHost: ADDR\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\n"
		next = "GET /api/agents HTTP/1.1\r\nHost: ADDR\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"
	)
	for name, request := range map[string]string{
		"length and chunks":           head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"chunks and length":           head + "Transfer-Encoding: chunked\r\nContent-Length: 12\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"length and chunks, refused":  strings.Replace(head, "TOKEN", "wrong", 1) + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"length and chunks, unknown":  strings.Replace(head, "/api/conversations", "/nothing", 1) + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"chunks of an old protocol":   strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + "Connection: keep-alive\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
		"GET with length and chunks":  "GET /api/agents HTTP/1.1\r\nHost: ADDR\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"page with length and chunks": "GET / HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if all := statuses(t, request+next); len(all) != 1 {
				t.Errorf("%d answers %v, want 1: the connection was used again", len(all), all)
			}
		})
	}
	t.Run("length alone", func(t *testing.T) { // the control: such a connection stays open
		if all := statuses(t, head+"Content-Length: 2\r\n\r\n{}"+next); len(all) != 2 {
			t.Errorf("%d answers %v, want 2", len(all), all)
		}
	})
}
