// The check that a stream arrives piece by piece, which proxies that buffer prevent.

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/sse"
)

// The test stream of a gateway. internal/server/ops sends it.
const (
	frames   = 5
	interval = 100 * time.Millisecond
	// maxDelay is the difference of two frames' delays from which on a proxy must have buffered one of them. It is below interval, so
	// that a proxy that waits for the next frame is detected.
	maxDelay = interval * 3 / 4
)

// frame is one frame of the test stream: its number, the time when it was sent in epoch milliseconds, and what the
// gateway received of the request.
type frame struct {
	N       int
	SentAt  int64 `json:"sent"`
	Headers []string
	Host    string
	HTTPS   bool
	Proxied bool
	Proto   string

	arrived time.Time
}

// testHeaders are headers that clients send and that must reach the gateway: for retries of commands, for resuming
// streams and pushes, and for tracing.
var testHeaders = []string{"Idempotency-Key", "Last-Event-Id", "Traceparent", "Upload-Offset"}

// tries is the number of attempts before a proxy is reported to buffer. A proxy buffers each time; a busy machine
// delays frames only sometimes.
const tries = 3

// Stream reads the test stream of the gateway at url as a browser would, and reports what proxies in between do:
// buffer, compress or interrupt the stream, or remove headers from the request.
//
// The gateway sends a few frames at a known interval, each with the time when it was sent and the headers of the
// request. If the frames seem to be buffered, the stream is read again, and only the findings of the last attempt are
// returned.
func Stream(ctx context.Context, client *http.Client, url, token string) (findings []Finding) {
	for range tries {
		r := &report{check: "stream"}
		r.stream(ctx, client, url, token)
		if findings = r.findings; !r.buffered {
			break
		}
	}
	return findings
}

// stream makes one attempt. It stops at the first problem that makes further findings meaningless: no connection, no
// access, a response that isn't the test stream, or a compressed one, which can't be read as frames.
func (r *report) stream(ctx context.Context, client *http.Client, url, token string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	header := authorization(token)
	header.Set("Accept", "text/event-stream")
	header.Set("Accept-Encoding", "gzip, br") // as browsers do
	for _, name := range testHeaders {
		header.Set(name, "0")
	}
	res, err := send(ctx, client, url+"/api/selftest/stream", header)
	if err != nil {
		r.fail("check the address and its DNS name", "%s is unreachable: %v", url, err)
		return
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		r.fail("set LEAT_API_TOKEN; if it is set, the proxy removes the Authorization header", "the gateway at %s requires a token", url)
		return
	case res.StatusCode == http.StatusForbidden:
		r.fail("set public_url, or add the host name to hosts", "the gateway at %s refuses this host name (status 403)", url)
		return
	case res.StatusCode != http.StatusOK:
		r.fail("check that the address is the gateway's, with its base_path", "%s responds with status %d", url, res.StatusCode)
		return
	case !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		r.fail("check that the address is the gateway's", "%s responds with %q instead of a stream", url, res.Header.Get("Content-Type"))
		return
	}
	if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		r.certificate(res.TLS.PeerCertificates[0].NotAfter, time.Now())
	}
	if e := res.Header.Get("Content-Encoding"); e != "" {
		r.fail("turn off compression for text/event-stream: it delays text", "a proxy compresses the stream (%s)", e)
		return
	}
	if c := res.Header.Get("Cache-Control"); !strings.Contains(c, "no-transform") {
		r.warn("let the proxy pass Cache-Control unchanged", "a proxy removes no-transform from the response (Cache-Control is %q)", c)
	}
	got, err := readFrames(res.Body)
	r.frames(got, err)
	if len(got) > 0 {
		r.request(url, got[0])
	}
}

// soonOver is how long before its expiry a certificate should have been renewed. Tools renew certificates of 90 days
// a month before.
const soonOver = 14 * 24 * time.Hour

// certificate reports the expiry of the server's certificate. That it is valid for the host was checked by the
// handshake.
func (r *report) certificate(expiry, localTime time.Time) {
	validity := expiry.Sub(localTime)
	switch {
	case validity <= 0:
		r.fail("renew the certificate", "the certificate expired on %s", expiry.Format(time.DateOnly))
	case validity < soonOver:
		r.warn("renew the certificate, and check why it wasn't renewed automatically", "the certificate expires on %s", expiry.Format(time.DateOnly))
	default:
		r.ok("the certificate is valid until %s", expiry.Format(time.DateOnly))
	}
}

// readFrames reads frames until the stream ends, with the times of their arrival. All frames that
// arrive in one read have the same time, so buffering by a proxy is visible. After an error, it returns the frames that arrived
// before.
func readFrames(body io.Reader) (frames []frame, err error) {
	var reader sse.Reader
	buf := make([]byte, 4096)
	for {
		n, err := body.Read(buf)
		arrived := time.Now()
		ferr := reader.Feed(buf[:n], func(e sse.Event) error {
			f := frame{arrived: arrived}
			if err := json.Unmarshal(e.Data, &f); err != nil {
				return fmt.Errorf("a frame was modified in transit: %w", err)
			}
			frames = append(frames, f)
			return nil
		})
		switch {
		case ferr != nil:
			return frames, ferr
		case errors.Is(err, io.EOF):
			return frames, nil
		case err != nil:
			return frames, err
		}
	}
}

// frames reports whether all frames arrived, and when. The delay of a frame is the time from sending to arrival. It
// includes the difference of the two machines' clocks, so delays are compared only with the shortest of them.
func (r *report) frames(got []frame, err error) {
	if err != nil || len(got) != frames {
		message := fmt.Sprintf("%d of %d frames arrived", len(got), frames)
		if err != nil {
			message += ": " + err.Error()
		}
		r.fail("check the proxy's response timeout, and programs that scan responses", "%s", message)
		return
	}
	// Delays are compared with each other, because the clocks of the two machines may differ.
	delays := make([]time.Duration, len(got))
	for i, f := range got {
		delays[i] = f.arrived.Sub(time.UnixMilli(f.SentAt))
	}
	quickest := slices.Min(delays)
	worst := slices.Max(delays) - quickest
	if worst >= maxDelay {
		r.buffered = true
		r.fail("turn off the proxy's response buffering (nginx: proxy_buffering off, or pass X-Accel-Buffering) and programs that scan responses",
			"a proxy buffers responses: frames sent %v apart were delayed by up to %v", interval, round(worst))
		return
	}
	r.ok("frames arrive as they are sent (delays differ by at most %v)", round(worst))
}

// request reports what proxies changed in the request. Each frame contains the names of the headers that the gateway
// received, and whether it took the connection for HTTPS. The missing headers have consequences: for example, without
// Last-Event-ID a client that reconnects can't resume.
func (r *report) request(url string, f frame) {
	var missing []string
	for _, name := range testHeaders {
		if !slices.Contains(f.Headers, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.fail("let the proxy pass them", "a proxy removes headers from requests: %s", strings.Join(missing, ", "))
	}
	if strings.HasPrefix(url, "https:") && !f.HTTPS {
		r.warn("add the proxy's address to trusted_proxies, and let the proxy send X-Forwarded-Proto", "the gateway can't detect that it is reached over HTTPS: unless public_url begins with https, its cookies are not Secure")
	}
	if f.Proxied {
		r.ok("requests pass a proxy")
	}
}
