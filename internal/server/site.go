// The server behind a public URL: links, cookies and redirects use the public host, scheme and path.

package server

import (
	"net/http"
	"net/url"
	"strings"
)

// hstsAge is how long browsers use only TLS for the public host, in seconds: the usual year.
const hstsAge = "31536000"

// byPublicHost reports whether a host is that of the public URL. The ports may differ, because proxies leave them out.
func (s *Server) byPublicHost(hostport string) bool {
	return s.opt.PublicURL != nil && hostname(hostport) == hostname(s.opt.PublicURL.Host)
}

// publicOrigin reports whether an origin is that of the public URL.
func (s *Server) publicOrigin(o *url.URL) bool {
	p := s.opt.PublicURL
	return p != nil && o.Scheme == p.Scheme && hostname(o.Host) == hostname(p.Host) && port(o) == port(p)
}

// port returns a URL's port, or the default one of its scheme.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// secure reports whether the browser uses TLS, with this server or with a proxy.
func (s *Server) secure(r *http.Request) bool {
	return callerOf(r).https || s.byPublicHost(r.Host) && s.opt.PublicURL.Scheme == "https"
}

// prefix returns the prefix of every path for the client of a request, such as "" or "/leat": that of the public URL if the
// client used it, because a proxy may remove a part, or else the base path.
func (s *Server) prefix(r *http.Request) string {
	if s.byPublicHost(r.Host) {
		return strings.TrimSuffix(s.opt.PublicURL.EscapedPath(), "/")
	}
	return s.opt.BasePath
}

// URL returns the URL of a path such as "/api/agents" for the client of a request: absolute if the client used the public URL,
// or else only a path.
func (s *Server) URL(r *http.Request, path string) string {
	if s.byPublicHost(r.Host) {
		return s.opt.PublicURL.Scheme + "://" + s.opt.PublicURL.Host + s.prefix(r) + path
	}
	return s.opt.BasePath + path
}

// AbsoluteURL is [Server.URL] with the scheme and the host by which the client reached the server, for programs that get the URL elsewhere.
func (s *Server) AbsoluteURL(r *http.Request, path string) string {
	u := s.URL(r, path)
	if !strings.HasPrefix(u, "/") {
		return u
	}
	if s.secure(r) {
		return "https://" + r.Host + u
	}
	return "http://" + r.Host + u
}

// below removes the base path from a request. If the request has another path, outside is true.
//
// The request is copied, because handlers of net/http must not change the one that they get. The raw path
// is cut as well, so that escaped slashes in ids survive.
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

// rebased adds the prefix to the path of a redirect, which the mux makes without it.
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
