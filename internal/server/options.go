package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"net/url"
	"time"
)

// Options configure a server. The zero value is valid.
type Options struct {
	// Token is the API token, whose holder is the admin. If it is empty, no caller is the admin. If Users is nil too, every
	// caller is the admin, and the server accepts only loopback connections.
	Token string
	// Users verifies the tokens of end users. If it is nil, users have none.
	Users Users
	// Sessions stores data of sessions. If it is nil, sessions end with the server.
	Sessions SessionStore
	// Hosts are additional names of the server, besides those of the loopback: "example.org", or "example.org:8443" for one
	// port. "*" allows all, for a server with a token. See [Server.SetReach].
	Hosts []string
	// AllowedOrigins are additional origins whose pages may call the server: "https://app.example.org", or "*".
	AllowedOrigins []string
	// AppOrigins allows pages of apps on the user's device: of the Capacitor, Electrobun and Tauri shells, and of
	// http://localhost and https://localhost on any port.
	AppOrigins bool
	// PublicURL is the URL under which clients reach the server, or nil. Its host is allowed, the pages of its origin may call,
	// and URLs and cookies are made for it. It has a scheme, a host, and optionally a path.
	PublicURL *url.URL
	// BasePath is the prefix of every route, such as "/leat". Probes also work without it.
	BasePath string
	// TrustedProxies are the addresses whose X-Forwarded-For, -Proto and -Host, or Forwarded, headers are trusted. Connections
	// over a Unix socket are always trusted.
	TrustedProxies []netip.Prefix
	// TLS encrypts the connections of all listeners except Unix sockets, and enables HTTP/2. See [LoadCertificate].
	TLS *tls.Config
	// Producer returns the turn whose stream a token allows to push, or "" for any other token. It is called on routes for
	// producers. If it is nil, the server accepts no such tokens.
	Producer func(ctx context.Context, token string) (turn string, err error)
	// Log gets one line per request, and warnings. If it is nil, nothing is logged.
	Log *slog.Logger
	// If Metrics is nil, they are not collected.
	Metrics *Metrics

	// MaxConnections is the largest number of open connections. 0 means DefaultMaxConnections.
	MaxConnections int
	// SessionLife is how long a cookie is valid. 0 means 30 days.
	SessionLife time.Duration
	// Heartbeat is how long a stream may be silent before it sends a heartbeat. 0 means defaultHeartbeat.
	Heartbeat time.Duration
	// Stall is how long a reader of a stream may accept no bytes before it is disconnected. 0 means DefaultStall.
	Stall time.Duration
	// BodyTimeout is how long a client may pause in the body of an ordinary request. 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
}

const (
	// DefaultMaxConnections fits under the usual limit of 65,536 open files.
	DefaultMaxConnections = 20_000
	// defaultSessionLife is the usual one of similar tools.
	defaultSessionLife = 30 * 24 * time.Hour
	// defaultHeartbeat is well below the 30 to 60 s after which proxies close silent connections.
	defaultHeartbeat = 15 * time.Second
	// DefaultStall is long enough for a phone in a tunnel. A disconnected reader can resume.
	DefaultStall = 10 * time.Minute
	// DefaultBodyTimeout is longer than the usual pauses of a mobile connection.
	DefaultBodyTimeout = 30 * time.Second

	// DefaultMaxBody is the largest body in bytes, unless the route has its own limit.
	DefaultMaxBody = 1 << 20
	// MaxMessageBody is the largest body with a message, in bytes, as in Eliza.
	MaxMessageBody = 20 << 20
	// MaxHeader is the largest request head in bytes. The cookies and tokens of all known clients fit.
	MaxHeader = 32 << 10

	headerTimeout   = 10 * time.Second // for a request's head
	idleTimeout     = 2 * time.Minute  // between two requests of a connection
	shutdownTimeout = 5 * time.Second  // for ordinary requests to finish after the streams have ended
	leftoverTimeout = time.Second      // for the rest of a streamed body after its response
)

// setDefaults replaces zero values, so that the rest of the package need not check for them.
func (o *Options) setDefaults() {
	o.SessionLife = cmp.Or(o.SessionLife, defaultSessionLife)
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, DefaultBodyTimeout)
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	if o.Sessions == nil {
		o.Sessions = newMemorySessions()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}
