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

// The test stream of a gateway, as server/ops has it.
const (
	frames   = 5
	interval = 100 * time.Millisecond
	// held is how much later than another a frame may arrive before something must have held it back.
	maxDelay = interval * 3 / 4
)

// frame is one frame of the test stream.
type frame struct {
	N       int
	Sent    int64
	Headers []string
	Host    string
	HTTPS   bool
	Proxied bool
	Proto   string

	arrived time.Time
}

// sent are the headers that have to reach the gateway.
var testHeaders = []string{"Idempotency-Key", "Last-Event-Id", "Traceparent", "Upload-Offset"}

// tries are made before something is said to buffer: what buffers does so each time, a busy machine does not.
const tries = 3

// Stream reads the test stream of the gateway at url from outside, as a browser would, and tells what lies between: whether
// something buffers, compresses or cuts the stream, or takes headers off the request.
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

func (r *report) stream(ctx context.Context, client *http.Client, url, token string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/selftest/stream", nil)
	if err != nil {
		r.fail("", "%v", err)
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "gzip, br") // as browsers do
	for _, name := range testHeaders {
		req.Header.Set(name, "0")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		r.fail("is it the right address, and does the name lead there?", "%s does not answer: %v", url, err)
		return
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		r.fail("give the token by LEAT_API_TOKEN; if it is given, the proxy takes the header Authorization off", "the gateway at %s wants a token", url)
		return
	case res.StatusCode == http.StatusForbidden:
		r.fail("set public_url, or add the name to hosts", "the gateway at %s does not go by this name (status 403)", url)
		return
	case res.StatusCode != http.StatusOK:
		r.fail("does the address lead to the gateway, with its base_path?", "%s answers with status %d", url, res.StatusCode)
		return
	case !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		r.fail("does the address lead to the gateway?", "%s answers with %q, not with a stream", url, res.Header.Get("Content-Type"))
		return
	}
	if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		r.certificate(res.TLS.PeerCertificates[0].NotAfter, time.Now())
	}
	if e := res.Header.Get("Content-Encoding"); e != "" {
		r.fail("switch compression off for text/event-stream: it holds text back", "something on the way compresses the stream (%s)", e)
		return
	}
	if c := res.Header.Get("Cache-Control"); !strings.Contains(c, "no-transform") {
		r.warn("let the proxy pass Cache-Control on as it is", "something on the way takes no-transform off the answer (Cache-Control is %q)", c)
	}
	got, err := readFrames(res.Body)
	r.frames(got, err)
	if len(got) > 0 {
		r.request(url, got[0])
	}
}

// soonOver is how long before its end a certificate should have been renewed.
const soonOver = 14 * 24 * time.Hour

func (r *report) certificate(expiry, localTime time.Time) {
	validity := expiry.Sub(localTime)
	switch {
	case validity <= 0:
		r.fail("renew it", "the certificate has expired on %s", expiry.Format(time.DateOnly))
	case validity < soonOver:
		r.warn("renew it, and see why that did not happen by itself", "the certificate expires on %s", expiry.Format(time.DateOnly))
	default:
		r.ok("the certificate is good until %s", expiry.Format(time.DateOnly))
	}
}

// readFrames reads frames until the stream ends, with the times of their arrival.
func readFrames(body io.Reader) (frames []frame, err error) {
	var reader sse.Reader
	buf := make([]byte, 4096)
	for {
		n, err := body.Read(buf)
		arrived := time.Now()
		ferr := reader.Feed(buf[:n], func(e sse.Event) error {
			f := frame{arrived: arrived}
			if err := json.Unmarshal(e.Data, &f); err != nil {
				return fmt.Errorf("a frame was changed on the way: %w", err)
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

func (r *report) frames(got []frame, err error) {
	if err != nil || len(got) != frames {
		message := fmt.Sprintf("%d of %d frames arrived", len(got), frames)
		if err != nil {
			message += ": " + err.Error()
		}
		r.fail("look for a time limit of the proxy on answers, and for what scans them", "%s", message)
		return
	}
	// Each frame's delay against the quickest: clocks of two machines need not agree for that.
	delays := make([]time.Duration, len(got))
	for i, f := range got {
		delays[i] = f.arrived.Sub(time.UnixMilli(f.Sent))
	}
	quickest := slices.Min(delays)
	worst := slices.Max(delays) - quickest
	if worst >= maxDelay {
		r.buffered = true
		r.fail("switch the proxy's response buffering off (nginx: proxy_buffering off, or let X-Accel-Buffering through), and what scans answers",
			"something on the way buffers: frames that were sent %v apart were held back up to %v", interval, round(worst))
		return
	}
	r.ok("frames arrive as they are sent (%v at most between the quickest and the slowest)", round(worst))
}

// request looks at what the gateway saw of the request.
func (r *report) request(url string, f frame) {
	var missing []string
	for _, name := range testHeaders {
		if !slices.Contains(f.Headers, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.fail("let the proxy pass them on", "something on the way takes headers off requests: %s", strings.Join(missing, ", "))
	}
	if strings.HasPrefix(url, "https:") && !f.HTTPS {
		r.warn("add the proxy's address to trusted_proxies, and let it send X-Forwarded-Proto", "the gateway does not know that it is reached by https: its cookies are not Secure unless public_url says so")
	}
	if f.Proxied {
		r.ok("a proxy is in between")
	}
}
