package doctor

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Port checks whether an address to listen on is free, in use by the gateway at url, or in use by another program. It
// also returns whether a gateway answered.
//
// It tries to listen on the address, and closes it at once. Only if that fails, it asks for /healthz, which every
// gateway answers, and then for /readyz, which a gateway answers with 200 when it accepts work.
func Port(ctx context.Context, client *http.Client, address, url string) (findings []Finding, isGateway bool) {
	r := &report{check: "port"}
	l, err := net.Listen("tcp", address)
	if err == nil {
		if err := l.Close(); err != nil {
			r.warn("", "%s: %v", address, err)
		}
		r.ok("%s is free", address)
		return r.findings, false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	status, _, herr := get(ctx, client, url+"/healthz")
	if herr != nil || status != http.StatusOK {
		r.fail("stop that program, or choose another address with --listen", "can't listen on %s, and no gateway answers there: %v", address, err)
		return r.findings, false
	}
	if status, _, err = get(ctx, client, url+"/readyz"); err == nil && status == http.StatusOK {
		r.ok("a gateway on %s is ready", address)
	} else {
		r.fail("see its log", "a gateway on %s is not ready (status %d)", address, status)
	}
	return r.findings, true
}

// Clock compares this machine's clock with the Date header of the gateway's response, which must come through the
// network: the clock of this machine agrees with itself. The header is taken to be from the middle of the request, so
// a slow network causes an error of at most half the time that the request takes.
func Clock(ctx context.Context, client *http.Client, url string) []Finding {
	r := &report{check: "clock"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	_, header, err := get(ctx, client, url+"/healthz")
	if err != nil {
		r.fail("check the address and its DNS name", "%s is unreachable: %v", url, err)
		return r.findings
	}
	middle := start.Add(time.Since(start) / 2)
	r.skew(header.Get("Date"), middle, url)
	return r.findings
}

// Clock differences from which on Clock warns and fails. Tokens have half a minute of leeway.
const (
	smallSkew = 5 * time.Second
	largeSkew = 25 * time.Second
)

// skew reports the difference of two clocks.
func (r *report) skew(date string, localTime time.Time, source string) {
	const fix = "synchronize the clock with NTP: tokens and signatures depend on it"
	remoteTime, err := http.ParseTime(date)
	if err != nil {
		r.warn("", "the response of %s has no valid Date header", source)
		return
	}
	// The header is rounded down to seconds, so on average it is half a second behind.
	d := localTime.Sub(remoteTime.Add(500 * time.Millisecond)).Abs().Round(time.Second)
	switch {
	case d >= largeSkew:
		r.fail(fix, "the clocks of this machine and of %s differ by %v", source, d)
	case d >= smallSkew:
		r.warn(fix, "the clocks of this machine and of %s differ by %v", source, d)
	default:
		r.ok("the clocks of this machine and of %s agree", source)
	}
}

// get requests a URL and discards the response's body, which must be short.
func get(ctx context.Context, client *http.Client, url string) (int, http.Header, error) {
	res, err := send(ctx, client, url, http.Header{})
	if err != nil {
		return 0, nil, err
	}
	return res.StatusCode, res.Header, res.Body.Close()
}

// send requests a URL with a header, which it keeps. The caller closes the response's body.
func send(ctx context.Context, client *http.Client, url string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return client.Do(req)
}

// authorization returns a header with the API token. If the token is empty, the header is empty.
func authorization(token string) http.Header {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header
}

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
