package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// Options configure a client. The zero value is the strictest.
type Options struct {
	// AllowPrivate permits every address, including loopback and private networks.
	AllowPrivate bool
	// Timeout limits a request from the connection to the last byte of the response. If it is 0, it is 10 seconds.
	Timeout time.Duration
	// MaxBody limits the body of a response, in bytes. If it is 0, it is 64 KiB.
	MaxBody int64

	resolver *net.Resolver // nil means the system's resolver
}

const (
	// defaultTimeout is enough for any receiver that responds at all.
	defaultTimeout = 10 * time.Second
	// defaultMaxBody fits short acknowledgements.
	defaultMaxBody = 64 << 10
	// maxHeader limits the header of a response, in bytes.
	maxHeader = 64 << 10
	// maxIdle limits the idle connections to one host, and idleLimit how long they stay open.
	maxIdle   = 4
	idleLimit = 90 * time.Second
	// dialLimit limits the TCP connection and the TLS handshake, each.
	dialLimit = 5 * time.Second
)

// New returns a client. A body may be closed early: the rest of it isn't waited for. The caller ends idle connections
// with CloseIdleConnections.
func New(o Options) *http.Client {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	dialer := &net.Dialer{Timeout: dialLimit, Resolver: o.resolver}
	if !o.AllowPrivate {
		dialer.ControlContext = control
	}
	return &http.Client{
		Timeout: o.Timeout,
		Transport: &transport{max: o.MaxBody, Transport: http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    dialLimit,
			MaxResponseHeaderBytes: maxHeader,
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleLimit,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewForSockets returns a client for WebSockets. The responses of New can't be written to, and its time limit would end a socket. limit
// is that of the TCP connection and the TLS handshake, each. allowPrivate is that of Options.
func NewForSockets(allowPrivate bool, limit time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: limit}
	if !allowPrivate {
		dialer.ControlContext = control
	}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: limit},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// control checks the address that is about to be dialed.
func control(_ context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %q", errPrivate, network, address)
	}
	return Check(to.Addr())
}

// transport limits the bodies of responses.
type transport struct {
	http.Transport
	max int64
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, remaining: t.max}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	remaining int64
}

// Read returns ErrTooLarge with the last bytes that are within the limit.
func (b *body) Read(p []byte) (int, error) {
	// It reads one byte more than allowed, to tell a body of exactly the limit from a longer one.
	if int64(len(p)) > b.remaining+1 {
		p = p[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.remaining {
		n, err = int(b.remaining), ErrTooLarge
	}
	b.remaining -= int64(n)
	return n, err
}

// Reason returns the cause of a failed request without its URL, which may contain a secret.
func Reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
