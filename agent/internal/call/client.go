package call

import (
	"net"
	"net/http"
	"time"
)

const (
	// dialLimit is how long a connection may take; what then takes long is the agent thinking, which its limit on silence bounds.
	dialLimit = 10 * time.Second
	// idleConns are kept for the next turns, so that each need not connect anew.
	idleConns = 64
	idleLimit = 90 * time.Second
)

// Client returns the client of one agent. Whoever has it closes its idle connections.
func Client() *http.Client {
	return &http.Client{
		Transport: Decoding{&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialLimit}).DialContext,
			TLSHandshakeTimeout: dialLimit,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        idleConns, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleLimit,
			DisableCompression: true, // a compressor holds text back
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
