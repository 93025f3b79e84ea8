// Which hosts and origins may call the server. The checks keep other sites in a user's browser from using the user's rights.

package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Reach is the set of host names of the server, and of origins whose pages may call it.
type Reach struct {
	Hosts   []string // see [Options.Hosts]
	Origins []string // see [Options.AllowedOrigins]
	Apps    bool     // see [Options.AppOrigins]
}

// SetReach replaces [Options.Hosts], [Options.AllowedOrigins] and [Options.AppOrigins] for later requests.
func (s *Server) SetReach(r Reach) {
	s.reach.Store(&r)
	s.refusedOrigins.forget()
}

// hostname returns the lower-case host of "host:port" or "host", without brackets and port.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// loopbackName reports whether a host is a name of this machine's loopback.
func loopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// hostAllowed guards against DNS rebinding, in which a page of another site points its own host name to this server. The host
// must be the loopback's, the public one, a configured one, or the address to which the client connected.
func (s *Server) hostAllowed(r *http.Request, hostport string) bool {
	host := hostname(hostport)
	if host == "" {
		return false
	}
	if loopbackName(host) || s.byPublicHost(hostport) {
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

// origin checks the Origin header that browsers send. It reports whether the request is allowed, and the origin for the CORS
// headers, which is "" if they are not needed. If linkable is set, pages of other sites may link to the response.
//
// The order is: a configured origin, the server's own, an app's, the public URL's. A configured origin of
// "*" allows every page, but still without credentials in CORS, so a foreign page needs a token of its
// own.
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
		return "", true // the server's own origin, through a proxy that leaves the port out
	}
	return o, true
}

// ownOrigin reports whether an origin is the one under which the browser reached the server. Behind a proxy that is not
// trusted, the server does not know whether the client used TLS. Then it accepts an origin with TLS if the browser's own
// headers, which no page can set, or any proxy's headers confirm it.
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

// fromOtherSite reports whether a request without an Origin may come from a page of another site. Browsers send no Origin for
// links, images, frames and scripts, but they send Sec-Fetch-Site, in which another port of this host is "same-site". Browsers
// without that header can still send forms, so a cookie alone changes nothing.
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
	// corsHeaders are the headers of Leat's clients, Eliza's clients, and clients of the model APIs and of Durable Streams.
	corsHeaders = "Accept, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access, Anthropic-Version, Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Leat-Conversation, Leat-Listed, Leat-Subject, Leat-Tenant, OpenAI-Organization, OpenAI-Project, " +
		"Producer-Epoch, Producer-Id, Producer-Seq, Stream-Closed, Stream-Expires-At, Stream-Fork-Offset, Stream-Fork-Sub-Offset, Stream-Forked-From, Stream-Seq, Stream-TTL, " +
		"Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset, X-Api-Key, X-Eliza-Terminal-Token, X-Eliza-Token, X-ElizaOS-Client-Id, X-ElizaOS-Terminal-Token, X-ElizaOS-Token, X-ElizaOS-UI-Language, X-Eliza-Client-Id, X-Stainless-Arch, X-Stainless-Helper-Method, " +
		"X-Stainless-Lang, X-Stainless-Os, X-Stainless-Package-Version, X-Stainless-Retry-Count, X-Stainless-Runtime, " +
		"X-Stainless-Runtime-Version, X-Stainless-Timeout"
	corsExposed = "ETag, Leat-Conversation, Leat-Turn, Leat-Turn-Outcome, Leat-Turn-State, Location, Producer-Epoch, Producer-Expected-Seq, Producer-Received-Seq, Producer-Seq, Request-Id, Retry-After, " +
		"Stream-Closed, Stream-Cursor, Stream-Expires-At, Stream-Next-Offset, Stream-SSE-Data-Encoding, Stream-TTL, Stream-Up-To-Date, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Offset, X-Request-Id"
	// corsMaxAge is how long a browser may cache a preflight, in seconds.
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

// preflight answers a browser's question which requests a page may send.
func (s *Server) preflight(w http.ResponseWriter, methods []string, origin string) {
	if len(methods) == 0 {
		writePlainError(w, errNoRoute)
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

// appSchemes are the URL schemes under which app shells load their pages. No website can have one of them as its origin.
var appSchemes = []string{
	"capacitor",          // Capacitor on iOS
	"capacitor-electron", // Capacitor's desktop platform
	"electrobun",
	"tauri", // Tauri on macOS, iOS and Linux
	"views", // Electrobun's bundled pages
}

// tauriHost is the host of Tauri's pages on Windows and Android. Tauri loads them over HTTP there.
const tauriHost = "tauri.localhost"

// appOrigin reports whether an origin belongs to an app on the user's device: to a shell, by its scheme, or to pages that the
// device itself serves on any port. Capacitor on Android uses https://localhost.
func appOrigin(u *url.URL) bool {
	if u.Host == "" || u.User != nil {
		return false
	}
	if slices.Contains(appSchemes, u.Scheme) {
		return true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || host == tauriHost {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// maxLoggedOrigins is how many refused origins are remembered. A client that invents origins must fill neither the log nor the
// memory.
const maxLoggedOrigins = 64

// originLog logs each refused origin once, with the setting that would allow it. Browsers hide the reason from the page, which
// sees only a failed connection, so its author finds the reason in the log.
type originLog struct {
	mu     sync.Mutex
	logged map[string]bool
}

// logRefused logs an origin the first time that it is refused, with the setting that would allow it. A page retries for as long as
// it is open, and each site could use many origins, so the number of logged ones is limited.
func (l *originLog) logRefused(log *slog.Logger, origin string) {
	if len(origin) > maxOriginLength {
		return // no browser sends such an origin
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged[origin] || len(l.logged) >= maxLoggedOrigins {
		return
	}
	if l.logged == nil {
		l.logged = map[string]bool{}
	}
	l.logged[origin] = true
	log.Warn("page refused: its origin is not allowed", "origin", origin, "setting", originSetting(origin))
}

// forget clears the logged origins, after the settings have changed.
func (l *originLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logged = nil
}

// maxOriginLength is the longest origin in the log, in bytes: a scheme, the longest host name and a port.
const maxOriginLength = 300

// originSetting returns the name of the setting that allows an origin.
func originSetting(origin string) string {
	if u, err := url.Parse(origin); err == nil && appOrigin(u) {
		return "app_origins"
	}
	return "allowed_origins"
}
