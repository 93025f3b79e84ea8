package doctor

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// slowPong is how long a ping may take there and back.
const slowPong = time.Second

// Socket opens a WebSocket to the gateway at url from outside, and sends a few pings.
func Socket(ctx context.Context, client *http.Client, url, token string) []Finding {
	r := &report{check: "socket"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	c, res, err := websocket.Dial(ctx, url+"/api/ws", &websocket.DialOptions{HTTPClient: client, HTTPHeader: header, CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		status := 0
		if res != nil {
			status = res.StatusCode
		}
		r.fail("let the proxy pass Upgrade and Connection on, by HTTP/1.1: the page needs it", "no WebSocket comes through (status %d): %v", status, err)
		return r.findings
	}
	defer func() { _ = c.CloseNow() }() // it was only a test
	if e := res.Header.Get("Sec-Websocket-Extensions"); e != "" {
		r.warn("switch it off: it holds text back", "something on the way compresses the socket (%s)", e)
	}
	worst := time.Duration(0)
	for range 3 {
		start := time.Now()
		if err = c.Write(ctx, websocket.MessageText, []byte(`{"type":"ping"}`)); err == nil {
			err = readUntil(ctx, c, `"pong"`)
		}
		if err != nil {
			r.fail("look for what closes sockets on the way, and into the gateway's log", "the WebSocket opens, but ends: %v", err)
			return r.findings
		}
		worst = max(worst, time.Since(start))
	}
	if worst > slowPong {
		r.warn("look for what buffers on the way", "a ping over the WebSocket takes %v", round(worst))
		return r.findings
	}
	r.ok("a WebSocket comes through, a ping takes %v at most", round(worst))
	return r.findings
}

// until reads frames up to one that holds what is looked for.
func readUntil(ctx context.Context, c *websocket.Conn, text string) error {
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if strings.Contains(string(b), text) {
			return nil
		}
	}
}
