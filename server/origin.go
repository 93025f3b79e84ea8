package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hostname returns the host of "host:port" or "host", without brackets and port, in lower case.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// loopbackName reports whether a host names this machine's loopback.
func loopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// hostAllowed guards against DNS rebinding, by which a foreign page makes its own name point here: the name that the
// client used must be loopback's, a configured one, or the very address that it connected to.
func (s *Server) hostAllowed(r *http.Request) bool {
	host := hostname(r.Host)
	if host == "" {
		return false
	}
	if loopbackName(host) {
		return true
	}
	for _, h := range s.opt.Hosts {
		if (h == "*" && s.TokenNeeded()) || strings.EqualFold(h, r.Host) || (!hasPort(h) && hostname(h) == host) {
			return true
		}
	}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && s.TokenNeeded() {
		ip := net.ParseIP(host)
		return ip != nil && ip.Equal(net.ParseIP(hostname(a.String())))
	}
	return false
}

func hasPort(h string) bool {
	_, _, err := net.SplitHostPort(h)
	return err == nil
}

// origin looks at the Origin that browsers send. It reports whether the request may go on, and the origin for which CORS
// headers are due: empty for none or the server's own.
func (s *Server) origin(r *http.Request) (cors string, ok bool) {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return "", true
	}
	o := values[0]
	if len(values) > 1 {
		return "", false
	}
	if slices.ContainsFunc(s.opt.AllowedOrigins, func(a string) bool { return a == "*" || strings.EqualFold(strings.TrimSuffix(a, "/"), o) }) {
		return o, true
	}
	u, err := url.Parse(o)
	return "", err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

const (
	// corsHeaders are what Leat's clients and Eliza's send.
	corsHeaders = "Accept, Authorization, Cache-Control, Content-Type, Idempotency-Key, Last-Event-ID, Leat-Subject, Leat-Tenant, " +
		"Upload-Offset, X-Api-Key, X-Eliza-Token, X-ElizaOS-Client-Id, X-ElizaOS-Token, X-ElizaOS-UI-Language, X-Eliza-Client-Id"
	corsExposed = "Leat-Turn, Leat-Turn-Outcome, Leat-Turn-State, Location, Retry-After, Upload-Offset"
	// corsMaxAge is how long a browser may remember a preflight, in seconds.
	corsMaxAge = "600"
)

func setCORS(h http.Header, origin string) {
	h.Add("Vary", "Origin")
	if origin == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsExposed)
}

// preflight answers a browser that asks what a page may send.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request, origin string) {
	methods := s.allowed(r)
	if len(methods) == 0 {
		WriteError(w, errNoRoute)
		return
	}
	if origin != "" {
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", corsHeaders)
		h.Set("Access-Control-Max-Age", corsMaxAge)
	}
	w.Header().Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
	w.WriteHeader(http.StatusNoContent)
}
