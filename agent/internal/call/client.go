package call

import (
	"net"
	"net/http"
	"time"
)

const (
	// dialLimit bounds the TCP and the TLS handshake, each. The response has no timeout: an agent may think for minutes, and the
	// turn's limit on silence covers that.
	dialLimit = 10 * time.Second
	// idleConns is the number of idle connections that are retained for later turns, each for idleLimit.
	idleConns = 64
	idleLimit = 90 * time.Second
)

// Client returns the HTTP client of one agent. It doesn't follow redirects, because the request's credentials and signature are meant for
// the configured address only. The caller closes its idle connections when the agent is closed.
func Client() *http.Client { return ClientWithin(dialLimit) }

// ClientWithin is [Client] with another limit for the TCP and the TLS handshake, each.
func ClientWithin(dial time.Duration) *http.Client {
	return &http.Client{
		Transport: Decoding{&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dial}).DialContext,
			TLSHandshakeTimeout: dial,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        idleConns, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleLimit,
			DisableCompression: true, // compression delays text until a block is full
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
