package doctor

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Port looks at an address to listen on: it is free, or the gateway whose health is at url is there, or somebody else. It
// reports whether a gateway answered.
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
	status, _, herr := get(ctx, client, url+"/healthz", nil)
	switch {
	case herr != nil || status != http.StatusOK:
		r.fail("stop what is there, or choose another address with --listen", "%s can't be listened on, and no gateway answers there: %v", address, err)
		return r.findings, false
	}
	if status, _, err = get(ctx, client, url+"/readyz", nil); err == nil && status == http.StatusOK {
		r.ok("a gateway listens on %s, and takes work", address)
	} else {
		r.fail("look into its log", "a gateway listens on %s, but takes no work (status %d)", address, status)
	}
	return r.findings, true
}

// Clock compares this machine's clock with that of a server, which its answers tell.
func Clock(ctx context.Context, client *http.Client, url string) []Finding {
	r := &report{check: "clock"}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	_, header, err := get(ctx, client, url+"/healthz", nil)
	if err != nil {
		r.fail("is it the right address, and does the name lead there?", "%s does not answer: %v", url, err)
		return r.findings
	}
	middle := start.Add(time.Since(start) / 2)
	r.skew(header.Get("Date"), middle, url)
	return r.findings
}

// The differences of clocks that matter. Tokens have half a minute of leeway.
const (
	smallSkew = 5 * time.Second
	largeSkew = 25 * time.Second
)

func (r *report) skew(date string, localTime time.Time, source string) {
	const fix = "set the clock by NTP: tokens and signatures expire by it"
	remoteTime, err := http.ParseTime(date)
	if err != nil {
		r.warn("", "%s does not say what time it is", source)
		return
	}
	// The header has whole seconds, cut off.
	d := localTime.Sub(remoteTime.Add(500 * time.Millisecond)).Abs().Round(time.Second)
	switch {
	case d >= largeSkew:
		r.fail(fix, "this machine's clock and that of %s differ by %v", source, d)
	case d >= smallSkew:
		r.warn(fix, "this machine's clock and that of %s differ by %v", source, d)
	default:
		r.ok("this machine's clock and that of %s agree", source)
	}
}

// get asks for a page of a few bytes.
func get(ctx context.Context, client *http.Client, url string, header http.Header) (int, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	return res.StatusCode, res.Header, res.Body.Close()
}
