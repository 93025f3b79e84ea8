package doctor

import (
	"context"
	"net"
	"net/http"
	"time"
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
