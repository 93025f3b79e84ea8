package server

import (
	"net/http"
	"net/url"
	"strings"
)

// hstsAge is how long a browser is to use nothing but TLS for the public host, in seconds: a year, as is usual.
const hstsAge = "31536000"

// byPublicHost reports whether a host is the one of the public URL. The port may be another one: proxies leave it out.
func (s *Server) byPublicHost(hostport string) bool {
	return s.opt.PublicURL != nil && hostname(hostport) == hostname(s.opt.PublicURL.Host)
}

// publicOrigin reports whether an origin is that of the public URL.
func (s *Server) publicOrigin(o *url.URL) bool {
	p := s.opt.PublicURL
	return p != nil && o.Scheme == p.Scheme && hostname(o.Host) == hostname(p.Host) && port(o) == port(p)
}

// port returns the port of a URL, of which browsers leave out the usual one.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// secure reports whether the browser speaks TLS, to us or to a proxy before us.
func (s *Server) secure(r *http.Request) bool {
	return callerOf(r).https || s.byPublicHost(r.Host) && s.opt.PublicURL.Scheme == "https"
}

// Prefix returns what stands before every path as the client of a request writes it: "", or such as "/leat". It is the
// public URL's own where the client came by it, since a proxy may take a part off, else the base path.
func (s *Server) Prefix(r *http.Request) string {
	if s.byPublicHost(r.Host) {
		return strings.TrimSuffix(s.opt.PublicURL.EscapedPath(), "/")
	}
	return s.opt.BasePath
}

// URL returns where the client of a request finds a path such as "/api/agents": an absolute URL below the public one where
// it came by that, else a path.
func (s *Server) URL(r *http.Request, path string) string {
	if s.byPublicHost(r.Host) {
		return s.opt.PublicURL.Scheme + "://" + s.opt.PublicURL.Host + s.Prefix(r) + path
	}
	return s.opt.BasePath + path
}

// below takes the base path off a request. outside says that the path does not lie below it.
func (s *Server) below(r *http.Request) (inner *http.Request, outside bool) {
	base := s.opt.BasePath
	if base == "" {
		return r, false
	}
	path, ok := strings.CutPrefix(r.URL.Path, base+"/")
	raw, rawOK := strings.CutPrefix(r.URL.RawPath, base+"/")
	if !ok || r.URL.RawPath != "" && !rawOK {
		return r, true
	}
	inner = new(http.Request)
	*inner = *r
	inner.URL = new(url.URL)
	*inner.URL = *r.URL
	inner.URL.Path = "/" + path
	if rawOK {
		inner.URL.RawPath = "/" + raw
	}
	return inner, false
}

// rebased puts the prefix before the path of a redirect, which the mux makes without it.
type rebased struct {
	http.ResponseWriter
	prefix string
}

func (w *rebased) WriteHeader(status int) {
	if to := w.Header().Get("Location"); strings.HasPrefix(to, "/") {
		w.Header().Set("Location", w.prefix+to)
	}
	w.ResponseWriter.WriteHeader(status)
}
