package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Every input has a limit, and what goes beyond it is refused at once or when the limit is reached, not when it ends.
func TestBombs(t *testing.T) {
	deep := strings.Repeat("[", 200_000)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	id := create(t)
	command := "/api/conversations/" + id + "/commands"
	push := "/api/conversations/" + id + "/turns?dialect=eliza-actions"
	for name, c := range map[string]struct {
		request string
		want    []int
	}{
		"deep arrays":        {request("POST", "/api/conversations", deep), []int{400, 413}},
		"deep objects":       {request("POST", "/api/conversations", strings.Repeat(`{"a":`, 150_000)), []int{400, 413}},
		"deep metadata":      {request("POST", "/api/conversations", `{"metadata":{"a":`+deep[:100_000]+strings.Repeat("]", 100_000)+`}}`), []int{400, 413}},
		"huge number":        {request("POST", "/api/conversations", `{"title":`+strings.Repeat("9", 900_000)+`}`), []int{400, 413}},
		"proto key":          {request("POST", "/api/conversations", `{"metadata":{"__proto__":{"admin":true}}}`), []int{400}},
		"lone surrogate":     {request("POST", command, `{"type":"send","text":"\ud800"}`), []int{400}},
		"not utf-8":          {request("POST", command, "{\"type\":\"send\",\"text\":\"\xff\xfe\"}"), []int{400}},
		"something follows":  {request("POST", "/api/conversations", `{}{"title":"second"}`), []int{400}},
		"length beyond":      {request("POST", "/api/conversations", "", "Content-Length: 99999999999"), []int{413, 400, 408}},
		"chunks beyond":      {request("POST", "/api/conversations", "200000\r\n"+strings.Repeat("x", 0x200000), "Transfer-Encoding: chunked"), []int{413}},
		"gzip bomb":          {request("POST", "/api/conversations", zipped.String(), "Content-Encoding: gzip"), []int{400, 415}},
		"gzip bomb, pushed":  {request("POST", push, zipped.String(), "Content-Encoding: gzip"), []int{415}},
		"head too large":     {request("GET", "/api/conversations", "", "X-A: "+strings.Repeat("a", 64<<10)), []int{431}},
		"too many headers":   {request("GET", "/api/conversations", "", strings.Split(strings.TrimSuffix(strings.Repeat("X-A: aaaaaaaaaa\n", 5000), "\n"), "\n")...), []int{431}},
		"address too long":   {request("GET", "/api/conversations?"+strings.Repeat("a", 64<<10), ""), []int{431, 414}},
		"token too long":     {request("GET", "/api/conversations", "", "Authorization: Bearer "+strings.Repeat("a", 20<<10)), []int{401}},
		"id too long":        {request("POST", "/api/conversations", `{"id":"`+strings.Repeat("a", 300)+`"}`), []int{400}},
		"title too long":     {request("POST", "/api/conversations", `{"title":"`+strings.Repeat("a", 100_000)+`"}`), []int{400, 413}},
		"key too long":       {request("POST", command, `{"type":"send","text":"x","key":"`+strings.Repeat("k", 5000)+`"}`), []int{400}},
		"two lengths":        {request("POST", "/api/conversations", "{}", "Content-Length: 2", "Content-Length: 3"), []int{400}},
		"coding unknown":     {request("POST", "/api/conversations", "{}", "Transfer-Encoding: xchunked"), []int{501, 400}},
		"space before colon": {request("GET", "/api/conversations", "", "X-A : b"), []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			want(t, raw(t, c.request), c.want...)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("endless line, pushed", func(t *testing.T) {
		a := raw(t, request("POST", push, `{"type":"chunk","text":"`+strings.Repeat("x", 40<<20)))
		if a.StatusCode != 0 && !strings.Contains(a.body, "422") && !strings.Contains(a.body, "larger") {
			t.Errorf("status %d: %.300s", a.StatusCode, a.body)
		}
		want(t, raw(t, request("GET", "/healthz", "")), 200)
	})
}

// A slow client costs one connection, for a limited time.
func TestSlowFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: waits for limits of 10 s and 15 s to pass; run it with LEAT_FULL=1")
	}
	t.Run("head", func(t *testing.T) { // slow loris: header lines at intervals, without an end
		t.Parallel()
		c := dial(t)
		drip(t, c, "GET /healthz HTTP/1.1\r\nHost: "+gate.addr+"\r\n", "X-A: b\r\n", 30*time.Second)
	})
	t.Run("socket without a token", func(t *testing.T) {
		t.Parallel()
		c := dial(t)
		if _, err := fmt.Fprintf(c, "GET /api/ws HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", gate.addr, upgrade); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		b, err := io.ReadAll(c)
		if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 101")) {
			t.Fatalf("%v %q", err, b)
		}
		if took := time.Since(begin); took > 40*time.Second {
			t.Errorf("it was cut after %v", took)
		}
	})
}

// drip writes a piece a moment until the gateway has had enough, which it must within the limit.
func drip(t *testing.T, c net.Conn, begin, piece string, within time.Duration) {
	t.Helper()
	if _, err := io.WriteString(c, begin); err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		_, _ = io.Copy(io.Discard, c) // until the gateway closes
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(within)
	for {
		select {
		case <-cut:
			return
		case <-late:
			t.Fatalf("still served after %v", within)
		case <-tick.C:
			_, _ = io.WriteString(c, piece) // if the connection is closed, cut reports it
		}
	}
}

// frame is a client's frame, masked with zeros.
func frame(first byte, length int, payload []byte) []byte {
	b := []byte{first, 0x80 | 127}
	b = binary.BigEndian.AppendUint64(b, uint64(length))
	return append(append(b, 0, 0, 0, 0), payload...)
}

// socket opens a socket whose first message is the token.
func socket(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := dial(t)
	if _, err := fmt.Fprintf(c, "GET /api/ws HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", gate.addr, token, upgrade); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v %v", res, err)
	}
	if e := res.Header.Get("Sec-WebSocket-Extensions"); e != "" {
		t.Errorf("compression was agreed on: %q", e) // a compressed message could expand without a limit
	}
	return c, r
}

// closing reads until the close frame and returns its code; 0 where the connection was just cut.
func closing(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(r, head); err != nil {
			return 0
		}
		n := int(head[1] & 0x7f)
		switch n {
		case 126:
			var l [2]byte
			if _, err := io.ReadFull(r, l[:]); err != nil {
				return 0
			}
			n = int(binary.BigEndian.Uint16(l[:]))
		case 127:
			t.Fatal("a frame of the gateway is that long?")
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(r, payload); err != nil {
			return 0
		}
		if head[0]&0x0f == 8 && n >= 2 {
			return int(binary.BigEndian.Uint16(payload))
		}
	}
}

func TestSockets(t *testing.T) {
	t.Run("frame too large", func(t *testing.T) {
		c, r := socket(t)
		go func() {
			_, err := c.Write(frame(0x81, 1<<40, make([]byte, 64<<10)))
			for range 2000 { // it is cut long before it is whole
				if err != nil {
					return
				}
				_, err = c.Write(make([]byte, 64<<10))
			}
		}()
		if code := closing(t, r); code != 1009 && code != 0 {
			t.Errorf("closed with %d", code)
		}
	})
	t.Run("endless fragments", func(t *testing.T) {
		c, r := socket(t)
		go func() {
			piece := frame(0x00, 64<<10, make([]byte, 64<<10))
			_, err := c.Write(frame(0x01, 1, []byte(" ")))
			for range 2000 {
				if err != nil {
					return
				}
				_, err = c.Write(piece)
			}
		}()
		if code := closing(t, r); code != 1009 && code != 0 {
			t.Errorf("closed with %d", code)
		}
	})
	t.Run("unmasked", func(t *testing.T) {
		c, r := socket(t)
		if _, err := c.Write([]byte{0x81, 2, '{', '}'}); err != nil {
			t.Fatal(err)
		}
		if code := closing(t, r); code != 1002 && code != 0 {
			t.Errorf("closed with %d", code)
		}
	})
	t.Run("not utf-8", func(t *testing.T) {
		c, r := socket(t)
		if _, err := c.Write(frame(0x81, 2, []byte{0xff, 0xfe})); err != nil {
			t.Fatal(err)
		}
		_ = r
		want(t, raw(t, request("GET", "/healthz", "")), 200)
	})
	t.Run("token by the address", func(t *testing.T) {
		c := dial(t)
		if _, err := fmt.Fprintf(c, "GET /api/ws?token=%s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", token, gate.addr, upgrade); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusSwitchingProtocols { // the socket opens without a user; its first message must close it
			if _, err := c.Write(frame(0x81, 14, []byte(`{"type":"list"}`)[:14])); err != nil {
				t.Fatal(err)
			}
			if code := closing(t, r); code != 1008 && code != 4401 && code != 1007 {
				t.Errorf("closed with %d", code)
			}
		}
	})
	t.Run("plain request to the socket", func(t *testing.T) {
		want(t, raw(t, request("GET", "/api/ws", "")), 426, 400)
	})
}
