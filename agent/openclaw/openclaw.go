package openclaw

import (
	"cmp"
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

// config is the configuration of one agent. URL and Dialect are required.
type config struct {
	URL   string // ws:// or wss://
	Token string // gateway.auth.token of the OpenClaw gateway; may be empty
	// Session is the template of session keys, see [agent.Expand]. If it is empty, it is defaultSession.
	Session string
	// Agent is the id of the OpenClaw agent for keys that name no agent. If it is empty, the gateway's default agent answers.
	Agent string
	// MediaRoot is a local folder that is searched for files that the agent names by path. If it is empty, no folder is searched.
	MediaRoot string
	// Dialect makes the decoders, one for each turn.
	Dialect dialect.Dialect

	dial  func(ctx context.Context, network, address string) (net.Conn, error) // replaced by tests
	limit int                                                                  // text of one turn, in bytes; 0 is agent.MaxStream; tests lower it
}

// defaultSession is the default template of session keys: each conversation has a separate session, see
// [gatewayAgent.sessionKey].
const defaultSession = "leat-{conversation}"

// gatewayAgent sends turns to an OpenClaw gateway over one connection that all conversations share. Its methods are safe for
// concurrent use.
type gatewayAgent struct {
	config     config
	httpBase   *url.URL // where the same gateway serves files over HTTP
	device     *device
	httpClient *http.Client
	root       *os.Root // MediaRoot; nil if it is not set

	// lifetime ends with Close. tasks counts the connection loop, which Close waits for.
	tasks    sync.WaitGroup
	lifetime context.Context
	cancel   context.CancelFunc

	// mu guards the fields below. It is the outermost lock: a queue's lock and a watch's lock may be acquired under it, and no I/O happens
	// under it.
	mu        sync.Mutex
	isStarted bool
	current   *connection   // nil while disconnected
	lastErr   error         // the last failure to connect; nil before the first attempt has failed
	changed   chan struct{} // closed and replaced when current or lastErr changes

	turns       map[string]*turn      // registered turns, by the turn's id
	runs        map[string]*turn      // the same turns, by the ids of their runs
	sessions    map[string]*turn      // by session key: the turn that occupies it, or whose runs spawned it
	stopTargets map[string]stopTarget // turns that were ended from outside, by turn id, until Stop is called
	// watches are the sessions that Follow follows.
	watches map[*watch]bool
	// observers are the turns that show a run of another client, by run id. There is one for each conversation that follows the session.
	observers  map[string][]*turn
	buffered   map[string][]item         // frames of runs in followed sessions until Observe is called, by run id
	adoptions  map[string]string         // conversations by adopted run, see recordAdoption
	beginnings map[turnKey]chan struct{} // see beginning
	logger     *slog.Logger
}

// stopTarget is what Stop has to abort upstream for a turn that Leat has already ended.
type stopTarget struct {
	session  string
	firstRun string // see [gatewayAgent.recordUnfinished]
	runs     []string
}

var (
	_ agent.Keeper  = (*gatewayAgent)(nil)
	_ agent.Resumer = (*gatewayAgent)(nil)
	_ agent.Steerer = (*gatewayAgent)(nil)
	_ agent.Stopper = (*gatewayAgent)(nil)
	_ agent.Checker = (*gatewayAgent)(nil)
)

// newGatewayAgent validates c and returns the agent. It doesn't connect: the first turn does, or Start, so that a gateway that
// is down doesn't keep Leat from starting. Credentials in the URL are an error, because URLs are logged.
func newGatewayAgent(c config) (*gatewayAgent, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New("invalid target: use the address of an OpenClaw gateway, such as ws://127.0.0.1:18789")
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the target must not contain a user, a password or a query; name the environment variable with the token in token_env")
	}
	c.Session = cmp.Or(c.Session, defaultSession)
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
		// A redirect could lead the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a.lifetime, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// host returns the gateway's host and port, as errors and logs show it. The whole URL is never shown.
func (a *gatewayAgent) host() string { return a.httpBase.Host }

// log returns the logger for events that belong to no turn.
func (a *gatewayAgent) log() *slog.Logger {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.logger
}

// ensureStarted starts the connection loop unless it already runs. Programs that embed the agent may call Run without Start.
func (a *gatewayAgent) ensureStarted() { a.Start(slog.New(slog.DiscardHandler)) }

// Check implements [agent.Checker]. If the shared connection is open, that is the answer; otherwise Check makes a separate
// connection and closes it after the handshake, so that the error is the current one rather than that of an earlier attempt.
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

var _ agent.Compactor = (*gatewayAgent)(nil)

// CompactCommand implements [agent.Compactor]. It is a command of OpenClaw's chats, which needs no more rights than a message;
// the method sessions.compact is for administrators.
func (a *gatewayAgent) CompactCommand() string { return "/compact" }
