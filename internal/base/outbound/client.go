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
	"slices"
	"strings"
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
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
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

// special are the special-purpose blocks (RFC 6890 and its successors) that are not part of the public internet, or that map to
// another address.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared, behind a carrier's NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // includes Teredo
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	unicast = netip.MustParsePrefix("2000::/3") // all allocated IPv6 addresses
)

// Check returns nil for an address of the public internet. Otherwise the error wraps errPrivate and names the kind of the
// address.
func Check(a netip.Addr) error {
	original := a
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) { // NAT64 translates it to the IPv4 address in the last four bytes
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return fmt.Errorf("%w: %s is %s", errPrivate, original, s.kind)
		}
	}
	if !a.IsValid() || (a.Is6() && !unicast.Contains(a)) {
		return fmt.Errorf("%w: %s is reserved", errPrivate, original)
	}
	return nil
}

// IsWithin reports whether a secret of a server may be sent to an address: one of the server itself, at base, or an https address of one
// of the domains.
func IsWithin(address, base string, domains ...string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if server, err := url.Parse(base); err == nil && u.Scheme == server.Scheme && u.Host == server.Host {
		return true
	}
	return u.Scheme == "https" && slices.ContainsFunc(domains, func(domain string) bool {
		return u.Hostname() == domain || strings.HasSuffix(u.Hostname(), "."+domain)
	})
}
