package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Reach holds the names under which the server may be addressed, and the origins whose pages may call it.
type Reach struct {
	Hosts   []string // see [Options.Hosts]
	Origins []string // see [Options.AllowedOrigins]
	Apps    bool     // see [Options.AppOrigins]
}

// SetReach replaces [Options.Hosts], [Options.AllowedOrigins] and [Options.AppOrigins] from the next request on.
func (s *Server) SetReach(r Reach) {
	s.reach.Store(&r)
	s.refusedOrigins.forget()
}

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
// client used must be loopback's, the public or a configured one, or the very address that it connected to.
func (s *Server) hostAllowed(r *http.Request, hostport string) bool {
	host := hostname(hostport)
	if host == "" {
		return false
	}
	if loopbackName(host) {
		return true
	}
	if s.byPublicHost(hostport) {
		return true
	}
	for _, h := range s.reach.Load().Hosts {
		if (h == "*" && s.TokenNeeded()) || strings.EqualFold(h, hostport) || (!hasPort(h) && hostname(h) == host) {
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
//
// linkable says that a page of another site may link to what the request asks for.
func (s *Server) origin(r *http.Request, linkable bool) (cors string, ok bool) {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return "", !s.fromOtherSite(r, linkable)
	}
	o := values[0]
	if len(values) > 1 {
		return "", false
	}
	reach := s.reach.Load()
	if slices.ContainsFunc(reach.Origins, func(a string) bool { return a == "*" || strings.EqualFold(strings.TrimSuffix(a, "/"), o) }) {
		return o, true
	}
	u, err := url.Parse(o)
	if err != nil || u.Host == "" || !strings.EqualFold(o, u.Scheme+"://"+u.Host) {
		return "", false // an origin has no user, path or query
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	if web && s.ownOrigin(r, u) {
		return "", true
	}
	if reach.Apps && appOrigin(u) {
		return o, true
	}
	if !web || !s.publicOrigin(u) {
		return "", false
	}
	if s.byPublicHost(r.Host) {
		return "", true // the server's own, by a proxy that leaves the port out
	}
	return o, true
}

// ownOrigin reports whether an origin is the one by which the browser reached the server. Behind a proxy that is not trusted
// the server does not know whether that was TLS. Then the browser's word counts, which no page can give, or that some proxy
// passed the request on.
func (s *Server) ownOrigin(r *http.Request, o *url.URL) bool {
	switch {
	case !strings.EqualFold(o.Host, r.Host):
		return false
	case s.secure(r):
		return o.Scheme == "https"
	case o.Scheme == "http":
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "same-origin" || site == "" && proxied(r.Header)
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// fromOtherSite reports whether a request without an Origin may come from a page of another site. Browsers send none for
// links, pictures, frames and scripts, but name the relation of the two sites in Sec-Fetch-Site; another port of this host
// is "same-site". A browser that is too old for the header can still send a form, so a cookie alone changes nothing.
func (s *Server) fromOtherSite(r *http.Request, linkable bool) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		_, byHeader := presented(r)
		return !safe(r.Method) && s.TokenNeeded() && !byHeader && r.Header.Get("Cookie") != ""
	}
	return !linkable || !safe(r.Method)
}

const (
	// corsHeaders are what Leat's clients, Eliza's, and those of the model APIs send.
	corsHeaders = "Accept, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access, Anthropic-Version, Authorization, Cache-Control, Content-Type, Idempotency-Key, Last-Event-ID, Leat-Conversation, Leat-Listed, Leat-Subject, Leat-Tenant, OpenAI-Organization, OpenAI-Project, " +
		"Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset, X-Api-Key, X-Eliza-Terminal-Token, X-Eliza-Token, X-ElizaOS-Client-Id, X-ElizaOS-Terminal-Token, X-ElizaOS-Token, X-ElizaOS-UI-Language, X-Eliza-Client-Id, X-Stainless-Arch, X-Stainless-Helper-Method, " +
		"X-Stainless-Lang, X-Stainless-Os, X-Stainless-Package-Version, X-Stainless-Retry-Count, X-Stainless-Runtime, " +
		"X-Stainless-Runtime-Version, X-Stainless-Timeout"
	corsExposed = "Leat-Conversation, Leat-Turn, Leat-Turn-Outcome, Leat-Turn-State, Location, Request-Id, Retry-After, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Offset, X-Request-Id"
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
func (s *Server) preflight(w http.ResponseWriter, methods []string, origin string) {
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
