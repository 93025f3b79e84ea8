package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// caller is who asks, as far as it can be believed.
type caller struct {
	addr    netip.Addr // not valid where nothing tells it: a Unix socket without a proxy's word
	host    string     // the Host header as it came
	https   bool       // the client speaks TLS, with us or with a trusted proxy
	outside bool       // some proxy, trusted or not, names a client that is not on this machine
}

type callerKey struct{}

// ClientAddr returns the address of the client that made a request: that of its connection, or, where a trusted proxy is at
// the other end, the one that the proxies name. It is not valid where nothing tells it, as on a Unix socket.
func ClientAddr(r *http.Request) netip.Addr { return callerOf(r).addr }

// HTTPS reports whether the client of a request speaks TLS, with us or with a trusted proxy.
func HTTPS(r *http.Request) bool { return callerOf(r).https }

func callerOf(r *http.Request) *caller {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c
	}
	// A request that did not come through a Server: no proxy is trusted.
	return &caller{addr: parseAddr(r.RemoteAddr), host: r.Host, https: r.TLS != nil}
}

// resolve finds out who asks. The request that it returns has the Host that the client used.
//
// A proxy's word counts only where the connection is a trusted proxy's; it is read from right to left, as far as each hop is
// a trusted one, since what stands further left is what the client wrote itself. Whoever may open our Unix socket is
// trusted by the rights of its file.
func (s *Server) resolve(r *http.Request) *http.Request {
	peer := parseAddr(r.RemoteAddr)
	c := &caller{addr: peer, host: r.Host, https: r.TLS != nil}
	host := r.Host
	hops, both := hopsOf(r.Header)
	for _, h := range slices.Concat(hops, both) {
		c.outside = c.outside || h.named && !h.addr.IsLoopback()
	}
	if ip := r.Header.Get("X-Real-Ip"); ip != "" && !parseAddr(ip).IsLoopback() {
		c.outside = true
	}
	if s.trusted(r, peer) {
		last, addr := s.walk(r, hops, peer)
		if _, other := s.walk(r, both, peer); len(both) > 0 && other != addr {
			// Two headers that contradict each other: one of them is the client's own, so neither is believed.
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

// walk follows hops from the nearest one on and returns the furthest that a trusted proxy told of, and the address there.
func (s *Server) walk(r *http.Request, hops []hop, addr netip.Addr) (last hop, _ netip.Addr) {
	for _, h := range slices.Backward(hops) {
		if !s.trusted(r, addr) {
			break
		}
		last = h
		if !h.addr.IsValid() {
			break // not told, "unknown" or nonsense: the proxy before it is all that is known
		}
		addr = h.addr
		r = nil // only the first hop can be a Unix socket's
	}
	return last, addr
}

// trusted reports whether what an address says of those before it is believed. r is the request for the connection itself.
func (s *Server) trusted(r *http.Request, addr netip.Addr) bool {
	if !addr.IsValid() {
		return r != nil && overUnix(r)
	}
	return slices.ContainsFunc(s.opt.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// hop is what one proxy says of the connection that it got.
type hop struct {
	addr  netip.Addr // not valid where it can't be read
	named bool       // the proxy said who connected
	proto string
	host  string
}

// hopsOf reads the X-Forwarded headers, or Forwarded where there are none of those, from the client to the nearest proxy.
// both is what Forwarded says beside the X-Forwarded headers: most proxies write the one and pass the other on as it came.
func hopsOf(h http.Header) (hops, both []hop) {
	forwarded := parseForwarded(strings.Join(h.Values("Forwarded"), ","))
	addrs, protos, hosts := list(h, "X-Forwarded-For"), list(h, "X-Forwarded-Proto"), list(h, "X-Forwarded-Host")
	n := len(addrs)
	if n == 0 && len(protos)+len(hosts) == 0 {
		return forwarded, nil
	}
	for _, a := range addrs {
		hops = append(hops, hop{addr: parseAddr(a), named: true})
	}
	if n == 0 {
		hops = []hop{{}}
	}
	// Proxies append to the first header and mostly overwrite the others: those tell of the nearest, unless they are as long.
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

func list(h http.Header, name string) []string {
	var out []string
	for _, line := range h.Values(name) {
		for v := range strings.SplitSeq(line, ",") {
			if v = strings.TrimSpace(v); v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

// parseForwarded reads a Forwarded header (RFC 7239). Of an element that is malformed nothing counts but that it is there.
func parseForwarded(s string) []hop {
	var out []hop
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
				h.addr, h.named = parseAddr(value), true
			case "proto":
				h.proto = value
			case "host":
				h.host = value
			}
		}
		out = append(out, h)
	}
	return out
}

// cutUnquoted cuts at the first sep outside of quotes.
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

// parseAddr reads an address with or without a port. What it can't read is not valid.
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

// proxied reports whether some proxy, trusted or not, says that it passed a request on. A page can't send these headers
// without a preflight, which has none.
func proxied(h http.Header) bool {
	for _, name := range proxyHeaders {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// proxyHeaders are what proxies add.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// Local reports whether a request came to and from this machine's loopback, addressed as such and not passed on by a proxy.
func Local(r *http.Request) bool {
	if proxied(r.Header) {
		return false
	}
	return toLoopback(r) && loopbackName(hostname(r.Host)) && (overUnix(r) || loopbackName(hostname(r.RemoteAddr)))
}

// toLoopback reports whether the connection was made to a loopback address. Where the address is not known it was not.
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
