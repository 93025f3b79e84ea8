// The client's address and scheme behind proxies. Only headers of proxies that the operator trusts count.

package server

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// caller describes a request and its client, using forwarded headers only of trusted proxies.
type caller struct {
	request string     // the id of the request
	addr    netip.Addr // invalid if unknown: a Unix socket without a proxy
	host    string     // the Host header as received
	https   bool       // the client uses TLS, with this server or with a trusted proxy
	outside bool       // a proxy, trusted or not, reports a client on another machine
}

type callerKey struct{}

// ClientAddr returns the address of a request's client: that of the connection, or behind a trusted proxy the one that the
// proxies report. If it is unknown, as on a Unix socket, the address is invalid.
func ClientAddr(r *http.Request) netip.Addr { return callerOf(r).addr }

// HTTPS reports whether a request's client uses TLS, with this server or with a trusted proxy.
func HTTPS(r *http.Request) bool { return callerOf(r).https }

func callerOf(r *http.Request) *caller {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c
	}
	// The request did not pass a Server, so no proxy is trusted.
	return &caller{addr: parseAddr(r.RemoteAddr), host: r.Host, https: r.TLS != nil}
}

// resolve determines the client of a request. The returned request has the Host that the client used.
//
// Headers of proxies count only on connections of trusted proxies. They are read from right to left up to the first hop that is
// not trusted, because the client itself may have written everything left of it. The permissions of a Unix socket's file
// protect it, so everything on it is trusted.
func (s *Server) resolve(r *http.Request) *http.Request {
	peer := parseAddr(r.RemoteAddr)
	c := &caller{addr: peer, host: r.Host, https: r.TLS != nil}
	host := r.Host
	hops, forwarded := hopsOf(r.Header)
	for _, h := range slices.Concat(hops, forwarded) {
		c.outside = c.outside || h.hasClient && !h.addr.IsLoopback()
	}
	if ip := r.Header.Get("X-Real-Ip"); ip != "" && !parseAddr(ip).IsLoopback() {
		c.outside = true
	}
	if s.trusted(r, peer) {
		last, addr := s.walk(r, hops, peer)
		if _, other := s.walk(r, forwarded, peer); len(forwarded) > 0 && other != addr {
			// The two kinds of headers contradict each other. One of them is the client's, so neither is used.
			last, addr = hop{}, peer
		}
		c.addr, c.https = addr, c.https || strings.EqualFold(last.proto, "https")
		if last.host != "" {
			host = last.host
		}
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
	r.Host = host
	return r
}

// walk follows the hops from the nearest one and returns the furthest one that a trusted proxy reports, and its address.
func (s *Server) walk(r *http.Request, hops []hop, addr netip.Addr) (last hop, _ netip.Addr) {
	for _, h := range slices.Backward(hops) {
		if !s.trusted(r, addr) {
			break
		}
		last = h
		if !h.addr.IsValid() {
			break // missing, "unknown" or invalid: the proxy before it is the last one known
		}
		addr = h.addr
		r = nil // only the first hop can be a Unix socket's
	}
	return last, addr
}

// trusted reports whether the hops before an address are trusted. r is the request if the address is the connection's own.
func (s *Server) trusted(r *http.Request, addr netip.Addr) bool {
	if !addr.IsValid() {
		return r != nil && overUnix(r)
	}
	return slices.ContainsFunc(s.opt.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// hop is what one proxy reports about its client.
type hop struct {
	addr      netip.Addr // invalid if it could not be parsed
	hasClient bool       // the proxy reported a client
	proto     string
	host      string
}

// hopsOf parses the X-Forwarded headers, or Forwarded if the request has none of those, from the client to the nearest proxy. If both
// kinds exist, other has the hops of Forwarded. Most proxies write one kind and pass on the other unchanged.
//
// X-Real-Ip is not used here, since it has no list that could be checked from the right.
func hopsOf(h http.Header) (hops, other []hop) {
	forwarded := parseForwarded(strings.Join(h.Values("Forwarded"), ","))
	addrs, protos, hosts := list(h, "X-Forwarded-For"), list(h, "X-Forwarded-Proto"), list(h, "X-Forwarded-Host")
	n := len(addrs)
	if n == 0 && len(protos)+len(hosts) == 0 {
		return forwarded, nil
	}
	for _, a := range addrs {
		hops = append(hops, hop{addr: parseAddr(a), hasClient: true})
	}
	if n == 0 {
		hops = []hop{{}}
	}
	// Proxies append to the first header and mostly overwrite the others, so a shorter list describes the nearest hops.
	for i := range hops {
		hops[i].proto, hops[i].host = at(protos, i, len(hops)), at(hosts, i, len(hops))
	}
	return hops, forwarded
}

func at(values []string, i, n int) string {
	switch {
	case len(values) == 0:
		return ""
	case len(values) == n:
		return values[i]
	}
	return values[len(values)-1]
}

// list returns the values of a header that may be sent as several lines and as lists separated by commas.
func list(h http.Header, name string) []string {
	var values []string
	for _, line := range h.Values(name) {
		for v := range strings.SplitSeq(line, ",") {
			if v = strings.TrimSpace(v); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// parseForwarded parses a Forwarded header (RFC 7239). An invalid element counts as a hop without data.
func parseForwarded(s string) []hop {
	var hops []hop
	for len(s) > 0 {
		var element string
		element, s = cutUnquoted(s, ',')
		if strings.TrimSpace(element) == "" {
			continue
		}
		h := hop{}
		for len(element) > 0 {
			var pair string
			pair, element = cutUnquoted(element, ';')
			name, value, _ := strings.Cut(pair, "=")
			value = unquote(strings.TrimSpace(value))
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "for":
				h.addr, h.hasClient = parseAddr(value), true
			case "proto":
				h.proto = value
			case "host":
				h.host = value
			}
		}
		hops = append(hops, h)
	}
	return hops
}

// cutUnquoted cuts s at the first sep outside of quotes.
//
// Quoted values may contain both separators, and a backslash escapes the next byte (RFC 9110, section
// 5.6.4).
func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	return strings.ReplaceAll(s[1:len(s)-1], `\`, "")
}

// parseAddr parses an address with or without a port. If s is invalid, so is the result.
//
// IPv4 addresses in IPv6 form become IPv4, and zones are removed, so that an address has one form in all
// counts and logs.
func parseAddr(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// overUnix reports whether a request came over a Unix socket.
func overUnix(r *http.Request) bool {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a != nil && a.Network() == "unix"
}

// proxied reports whether headers show that a proxy, trusted or not, has forwarded the request. A page can't set these headers
// without a preflight, which does not have them.
func proxied(h http.Header) bool {
	return slices.ContainsFunc(proxyHeaders, func(name string) bool { return h.Get(name) != "" })
}

// proxyHeaders are the headers that proxies add.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// Local reports whether a request came from and to this machine's loopback, under its name and without a proxy.
func Local(r *http.Request) bool {
	if proxied(r.Header) {
		return false
	}
	return toLoopback(r) && loopbackName(hostname(r.Host)) && (overUnix(r) || loopbackName(hostname(r.RemoteAddr)))
}

// toLoopback reports whether the connection was made to a loopback address. An unknown address is not one.
func toLoopback(r *http.Request) bool {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a != nil && loopbackAddr(a)
}

func loopbackAddr(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	return loopbackName(hostname(a.String()))
}

// headerRequestID contains the id of a request, in the response and in the log. The id of a trusted proxy is used, so that both
// logs match; from other clients the header is ignored.
const headerRequestID = "X-Request-Id"

// RequestID returns the id of a context's request, or "" outside of requests.
func RequestID(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c.request
	}
	return ""
}

var (
	requestID   = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// label gives a request of resolve its id and joins the client's trace. The work of a turn that the request starts belongs to the same
// trace.
func (s *Server) label(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(headerRequestID)
	if !s.trusted(r, parseAddr(r.RemoteAddr)) || !requestID.MatchString(id) {
		id = rand.Text()[:16]
	}
	w.Header().Set(headerRequestID, id)
	callerOf(r).request = id
	if tp := r.Header.Get("Traceparent"); traceParent.MatchString(tp) {
		r = r.WithContext(agent.WithTraceParent(r.Context(), tp))
	}
	return r
}
