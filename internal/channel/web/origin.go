package web

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// proxyHeaders are the headers that proxies add to the requests of others. A visitor behind such a proxy looks like
// one on this machine, unless these are checked. A proxy that adds none of them must not be used with a channel that
// isn't public.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// isOriginAllowed checks the Origin header, which browsers send with the requests of pages and programs don't. A page is allowed if
// its origin is configured, or if it comes from the address that it calls and that address is a name of the loopback or a number.
// Other names don't count: a page could make its own name point to this machine.
func (c *Channel) isOriginAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	origin := values[0]
	if len(values) > 1 {
		return false
	}
	if slices.ContainsFunc(c.options.Origins, func(o string) bool { return o == "*" || strings.EqualFold(strings.TrimSuffix(o, "/"), origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	host := u.Hostname()
	return isLoopback(host) || net.ParseIP(host) != nil
}

// isLocal reports whether a request comes from a person or program on this machine: over the loopback, under one of its names, and
// without a proxy. The host is checked too: a page of another site could make its name point to this machine.
func isLocal(r *http.Request) bool {
	for _, name := range proxyHeaders {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return isLoopback(hostOf(r.RemoteAddr)) && isLoopback(hostOf(r.Host))
}

// isLoopback reports whether a host is a name of this machine's loopback.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// hostOf returns the host of "host:port" or "host", without brackets.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}
