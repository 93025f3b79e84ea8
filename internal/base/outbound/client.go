package outbound

import (
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

// Options say what a client may do. The zero value is the strictest.
type Options struct {
	// AllowPrivate lets any address be dialled, this machine and its network included.
	AllowPrivate bool
	// Timeout bounds a request from its connection to the last byte of its answer; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxBody bounds what can be read of an answer's body, in bytes; 0 is DefaultMaxBody.
	MaxBody int64

	resolver *net.Resolver // nil is the system's
}

const (
	// DefaultTimeout is what a receiver that answers at all needs.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxBody fits the answers of programs that say whether they took something.
	DefaultMaxBody = 64 << 10
	// maxHeader bounds an answer's header, in bytes.
	maxHeader = 64 << 10
	// maxIdle bounds the connections to one host that are kept open for the next request, and idleLimit for how long.
	maxIdle   = 4
	idleLimit = 90 * time.Second
	// dialLimit bounds a connection and its TLS handshake each.
	dialLimit = 5 * time.Second
)

// New returns a client that keeps to the options. Closing an answer's body early is fine: what was not read is not waited
// for. The caller ends its idle connections with CloseIdleConnections.
func New(o Options) *http.Client {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
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

// control is called with the address that is about to be dialled.
func control(_ context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %q", ErrPrivate, network, address)
	}
	return Check(to.Addr())
}

// transport bounds the bodies of answers.
type transport struct {
	http.Transport
	max int64
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: t.max}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	// One byte more than allowed is asked for, to tell a body that ends from one that goes on.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), ErrTooLarge
	}
	b.left -= int64(n)
	return n, err
}

// Reason returns what went wrong with a request without its URL, which may hold a secret.
func Reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
