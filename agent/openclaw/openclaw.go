package openclaw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Config says where the gateway is, and how conversations are called there.
type config struct {
	URL   string // ws:// or wss://
	Token string // of the gateway
	// Session is the template of session keys, see [agent.Expand]; empty is DefaultSession.
	Session string
	// Agent is whose session it is, where the key does not say so; empty is the gateway's default agent.
	gatewayAgent string
	// MediaRoot is a folder of this machine under which files lie that the gateway's agent names; empty: there is none.
	MediaRoot string
	// Dialect is openclaw.
	Dialect dialect.Dialect

	dial  func(ctx context.Context, network, address string) (net.Conn, error) // tests
	limit int                                                                  // tests; what a turn may say, in bytes
}

// DefaultSession gives each conversation a session of its own.
const defaultSession = "leat-{conversation}"

// Agent sends turns to an OpenClaw gateway. All methods may be called from several goroutines.
type gatewayAgent struct {
	config     config
	httpBase   *url.URL // of what the gateway serves over HTTP
	device     *device
	httpClient *http.Client
	root       *os.Root // of MediaRoot; nil where there is none

	tasks    sync.WaitGroup
	lifetime context.Context
	cancel   context.CancelFunc

	mu        sync.Mutex
	isStarted bool
	current   *connection   // that is up; nil where none is
	lastErr   error         // why there is none
	changed   chan struct{} // closed, and made anew, when current or last changes

	turns       map[string]*turn      // by id
	runs        map[string]*turn      // by run
	sessions    map[string]*turn      // by session key: the one that runs there, and those of runs that it spawned
	stopTargets map[string]stopTarget // turns that somebody else ended, by id, until Stop
	watches     map[*watch]bool
	// observers are the turns in which runs of others are shown, by run: one for each conversation that follows the session.
	observers  map[string][]*turn
	buffered   map[string][]item         // frames of followed sessions' runs until they are observed
	adoptions  map[string]string         // conversations of runs that answer their turns, see remember
	beginnings map[turnKey]chan struct{} // see beginning
	logger     *slog.Logger
}

// place is where a turn's runs are.
type stopTarget struct {
	session  string
	firstRun string // see [Agent.keepUnfinished]
	runs     []string
}

var (
	_ agent.Keeper  = (*gatewayAgent)(nil)
	_ agent.Resumer = (*gatewayAgent)(nil)
	_ agent.Steerer = (*gatewayAgent)(nil)
	_ agent.Stopper = (*gatewayAgent)(nil)
	_ agent.Checker = (*gatewayAgent)(nil)
)

// New returns the agent. It does not connect.
func newGatewayAgent(c config) (*gatewayAgent, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New("the target is no address of a gateway; write it as ws://127.0.0.1:18789")
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the target holds a name, a password or a query; name the variable that holds the token with token_env")
	}
	if c.Session == "" {
		c.Session = defaultSession
	}
	if _, err := agent.Expand(c.Session, agent.Input{}); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	base := *u
	base.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	a := &gatewayAgent{
		config: c, httpBase: &base, changed: make(chan struct{}),
		turns: map[string]*turn{}, runs: map[string]*turn{}, sessions: map[string]*turn{}, stopTargets: map[string]stopTarget{},
		watches: map[*watch]bool{}, observers: map[string][]*turn{}, buffered: map[string][]item{}, adoptions: map[string]string{}, beginnings: map[turnKey]chan struct{}{}, logger: slog.New(slog.DiscardHandler),
	}
	if a.device, err = newDevice(c.Token, u.Host); err != nil {
		return nil, err
	}
	if c.MediaRoot != "" {
		if a.root, err = os.OpenRoot(c.MediaRoot); err != nil {
			return nil, fmt.Errorf("media_root: %w", err)
		}
	}
	if c.limit == 0 {
		a.config.limit = agent.MaxStream
	}
	dial := c.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeLimit}).DialContext
	}
	a.httpClient = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: handshakeLimit, ForceAttemptHTTP2: false,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a.lifetime, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// host is what errors call the gateway.
func (a *gatewayAgent) host() string { return a.httpBase.Host }

// log is where what belongs to no turn is told.
func (a *gatewayAgent) log() *slog.Logger {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.logger
}

// begin makes sure that a connection is kept.
func (a *gatewayAgent) ensureStarted() { a.Start(slog.New(slog.DiscardHandler)) }

// Check implements [agent.Checker]: it is let in. The connection that is kept answers for itself.
func (a *gatewayAgent) Check(ctx context.Context) error {
	if conn, _, _ := a.connection(); conn != nil && conn.isUp() {
		return nil
	}
	conn, err := a.dial(ctx)
	if err != nil {
		return err
	}
	return conn.ws.CloseNow()
}
