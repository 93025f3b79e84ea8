package doctor

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// slowPong is the round-trip time of a ping from which on the connection is reported as slow. Networks need far less
// time, so something in between probably waits.
const slowPong = time.Second

// Socket opens a WebSocket to the gateway at url and sends three pings.
//
// It offers compression as browsers do. The gateway never accepts it, so a compressed connection shows that a proxy
// in between ends the WebSocket itself. Three pings, because some proxies close a connection after its first frame;
// the slowest counts.
func Socket(ctx context.Context, client *http.Client, url, token string) []Finding {
	r := &report{check: "socket"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, res, err := websocket.Dial(ctx, url+"/api/ws", &websocket.DialOptions{HTTPClient: client, HTTPHeader: authorization(token), CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		status := 0
		if res != nil {
			status = res.StatusCode
		}
		r.fail("let the proxy pass Upgrade and Connection over HTTP/1.1: the page needs a WebSocket", "can't open a WebSocket (status %d): %v", status, err)
		return r.findings
	}
	defer func() { _ = c.CloseNow() }() // the check is done
	if e := res.Header.Get("Sec-Websocket-Extensions"); e != "" {
		r.warn("turn it off: it delays text", "the WebSocket is compressed by a proxy (%s)", e)
	}
	worst := time.Duration(0)
	for range 3 {
		start := time.Now()
		if err = c.Write(ctx, websocket.MessageText, []byte(`{"type":"ping"}`)); err == nil {
			err = readUntil(ctx, c, `"pong"`)
		}
		if err != nil {
			r.fail("check for proxies that close WebSockets, and the gateway's log", "the WebSocket opens but closes again: %v", err)
			return r.findings
		}
		worst = max(worst, time.Since(start))
	}
	if worst > slowPong {
		r.warn("check for proxies that buffer", "a ping over the WebSocket takes %v", round(worst))
		return r.findings
	}
	r.ok("a WebSocket can be opened; a ping takes at most %v", round(worst))
	return r.findings
}

// readUntil reads frames up to the first one that contains text. The gateway may send other frames first, such as its
// greeting.
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
