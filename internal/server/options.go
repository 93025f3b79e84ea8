package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"net/url"
	"time"
)

// Options are what a server is made of. All have defaults.
type Options struct {
	// Token is the API token, whose holder is the admin. Empty: nobody is, or, without Users, everybody, and then only loopback
	// is served.
	Token string
	// Users knows the tokens of end users; nil: they have none.
	Users Users
	// Sessions keeps what cookies need beyond a restart; nil: their sessions end with the server.
	Sessions SessionStore
	// Hosts are the names, beside those of this machine's loopback, under which the server may be addressed: "example.org",
	// or "example.org:8443" to fix the port. "*" allows all, for a server with a token. See [Server.SetReach].
	Hosts []string
	// AllowedOrigins are the origins, beside the server's own, whose pages may call it: "https://app.example.org", or "*".
	AllowedOrigins []string
	// AppOrigins allows the pages of apps on the user's device: those of the Capacitor, Electrobun and Tauri shells, and
	// those of http://localhost and https://localhost on any port.
	AppOrigins bool
	// PublicURL is how people reach the server, or nil: its host may be used, its origin's pages may call, and addresses and
	// cookies are made for it. It has a scheme, a host and perhaps a path.
	PublicURL *url.URL
	// BasePath stands before the path of every route, such as "/leat"; empty is none. Probes are answered without it too.
	BasePath string
	// TrustedProxies are the addresses whose word about the client is believed: X-Forwarded-For, -Proto and -Host, or
	// Forwarded. A connection over a Unix socket is believed by itself.
	TrustedProxies []netip.Prefix
	// TLS encrypts the connections of all listeners but Unix sockets, and brings HTTP/2; nil is none. See [Certificate].
	TLS *tls.Config
	// Producer tells which turn a token lets its holder bring the stream of; "" where it is no such token. It is asked on
	// routes that are a producer's. nil: there are no such tokens.
	Producer func(ctx context.Context, token string) (turn string, err error)
	Log      *slog.Logger
	// Metrics are what is counted; nil is none that anybody collects.
	Metrics *Metrics

	// MaxConnections bounds the connections that are open at once; 0 is DefaultMaxConnections.
	MaxConnections int
	// SessionLife is how long a page's cookie is good; 0 is DefaultSessionLife.
	SessionLife time.Duration
	// Heartbeat is how long a stream may be silent before it says that it lives; 0 is DefaultHeartbeat.
	Heartbeat time.Duration
	// Stall is how long a stream's reader may take nothing before it is cut; 0 is DefaultStall.
	Stall time.Duration
	// BodyTimeout is how long a client may pause while it sends an ordinary request's body; 0 is DefaultBodyTimeout.
	BodyTimeout time.Duration
}

const (
	// DefaultMaxConnections leaves room under the usual limit of 65,536 open files.
	DefaultMaxConnections = 20_000
	// DefaultSessionLife is how long people stay logged in on other tools of this kind.
	DefaultSessionLife = 30 * 24 * time.Hour
	// DefaultHeartbeat is well under the 30 to 60 s after which proxies cut silent connections.
	DefaultHeartbeat = 15 * time.Second
	// DefaultStall is long enough for a phone in a tunnel; a reader that was cut can resume.
	DefaultStall = 10 * time.Minute
	// DefaultBodyTimeout is longer than a mobile line's usual pauses.
	DefaultBodyTimeout = 30 * time.Second

	// DefaultMaxBody bounds the body of a route that says nothing else, in bytes.
	DefaultMaxBody = 1 << 20
	// MaxMessageBody bounds a body that carries a message, in bytes, as Eliza does.
	MaxMessageBody = 20 << 20
	// MaxHeader bounds a request's head, in bytes: cookies and tokens of all known clients fit.
	MaxHeader = 32 << 10

	headerTimeout   = 10 * time.Second // to send a request's head
	idleTimeout     = 2 * time.Minute  // between two requests of a connection
	shutdownTimeout = 5 * time.Second  // for ordinary requests to finish once streams were told
	leftoverTimeout = time.Second      // for what still comes of a streamed body that was answered
)

func (o *Options) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.SessionLife, DefaultSessionLife)
	def(&o.Heartbeat, DefaultHeartbeat)
	def(&o.Stall, DefaultStall)
	def(&o.BodyTimeout, DefaultBodyTimeout)
	if o.MaxConnections == 0 {
		o.MaxConnections = DefaultMaxConnections
	}
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
