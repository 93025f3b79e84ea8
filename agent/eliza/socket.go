package eliza

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// dialLimit limits the time to open the socket.
	dialLimit = 20 * time.Second
	// quiet is the time without a message after which the connection counts as dead. A server sends its status
	// every 5 s.
	quiet = 60 * time.Second
	// maxMessage limits a message of the server, in bytes.
	maxMessage = 1 << 20
	// newest is a cursor after all events (the largest safe integer of JavaScript). The first connection uses it, so that the
	// server doesn't replay events from before the start of the gateway.
	newest = "9007199254740991"
)

// socket follows the events of a server. Its goroutine connects and reads, from Start to Close. A lost
// connection never fails a turn, because turns don't use the socket.
type socket struct {
	url            *url.URL // with the scheme ws or wss
	token          string
	conversationOf func(room string) string
	patience       time.Duration // dialLimit, except in tests

	tasks  sync.WaitGroup // the goroutine of run
	life   context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	isStarted bool
	report    func(agent.Signal)
	lastEvent string // id of the last event, at which a new connection resumes; used only by run's goroutine
}

// newSocket returns a socket that isn't connected. conversationOf returns the conversation of a room.
func newSocket(u *url.URL, t string, conversationOf func(string) string) *socket {
	address := *u
	address.Scheme = "ws" + u.Scheme[len("http"):]
	s := &socket{url: &address, token: t, conversationOf: conversationOf, patience: dialLimit, lastEvent: newest}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// Signals implements [agent.Signaller]. It must be called before Start.
func (a *Agent) Signals(report func(agent.Signal)) {
	a.socket.mu.Lock()
	defer a.socket.mu.Unlock()
	a.socket.report = report
}

// Start implements [agent.Keeper]. It connects the socket if Signals was called; without a receiver it stays closed.
func (a *Agent) Start(log *slog.Logger) {
	s := a.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStarted || s.report == nil || s.life.Err() != nil {
		return
	}
	s.isStarted = true
	s.tasks.Go(func() { s.run(log) })
}

// Close implements [agent.Keeper]. It returns when the socket is closed.
func (a *Agent) Close() {
	a.socket.mu.Lock()
	a.socket.cancel() // under the lock, so that Start can't start a goroutine after Wait
	a.socket.mu.Unlock()
	a.socket.tasks.Wait()
	a.client.CloseIdleConnections()
}

// reconnect is the schedule of Eliza's own clients, with jitter. After 15 failures the socket only probes.
var reconnect = retry.Schedule{
	Initial: 500 * time.Millisecond, Max: 10 * time.Second, Growth: 1.5, Jitter: true,
	ProbeAfter: 15, Probe: 30 * time.Second,
}

// run reconnects the socket until Close.
func (s *socket) run(log *slog.Logger) {
	wait := retry.Backoff{Schedule: reconnect}
	for s.life.Err() == nil {
		gotMessage, err := s.follow()
		if s.life.Err() != nil {
			return
		}
		if gotMessage {
			wait.Reset()
		}
		after := wait.Next()
		log.Debug("Eliza server's socket ended; reconnecting", "error", err, "after", after.String())
		_ = retry.Sleep(s.life, after) // the loop ends when life does
	}
}

// follow connects, and reports events until the connection ends. gotMessage means that the connection worked,
// so that the next failure counts as the first. The request names the last event, after which the server
// replays the events that were missed.
func (s *socket) follow() (gotMessage bool, err error) {
	address := *s.url
	address.RawQuery = url.Values{"clientId": {"leat"}, "lastEventId": {s.lastEvent}}.Encode()
	header := http.Header{"User-Agent": {"Leat"}}
	if s.token != "" {
		header.Set("Authorization", "Bearer "+string(s.token))
	}
	ctx, cancel := context.WithTimeout(s.life, s.patience)
	c, _, err := websocket.Dial(ctx, address.String(), &websocket.DialOptions{HTTPHeader: header})
	cancel()
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer c.CloseNow()
	c.SetReadLimit(maxMessage)
	for {
		b, err := s.readMessage(c)
		if err != nil {
			return gotMessage, err
		}
		gotMessage = true
		s.handle(b)
	}
}

// readMessage reads a message, or returns an error if none arrives within the time of quiet. A connection that
// was lost without a TCP reset is noticed only by that.
func (s *socket) readMessage(c *websocket.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.life, quiet)
	defer cancel()
	_, b, err := c.Read(ctx)
	return b, err
}

// envelope is an event of the server. Its names are those of Eliza's protocol; RoomID is the only field that
// Leat interprets.
type envelope struct {
	Type       string          `json:"type"`
	EventID    string          `json:"eventId"`
	RunID      string          `json:"runId"`
	Seq        *int64          `json:"seq"`
	Stream     string          `json:"stream"`
	SessionKey string          `json:"sessionKey"`
	AgentID    string          `json:"agentId"`
	RoomID     string          `json:"roomId"`
	Payload    json.RawMessage `json:"payload"`
}

// handle reports a message if it is an event. Other messages, and malformed ones, are ignored: they concern the server's own
// page, and nothing depends on them.
func (s *socket) handle(b []byte) {
	var e envelope
	if json.Unmarshal(b, &e) != nil {
		return
	}
	switch e.Type {
	case "agent_event", "heartbeat_event", "training_event":
	default:
		return
	}
	if e.EventID != "" {
		if e.EventID == s.lastEvent {
			return // a server without cursors replays the last event
		}
		s.lastEvent = e.EventID
	}
	s.report(agent.Signal{
		Type: e.Type, Stream: e.Stream, RunID: e.RunID, Seq: e.Seq, SessionKey: e.SessionKey, AgentID: e.AgentID,
		Conversation: s.conversationOf(e.RoomID), Payload: e.Payload,
	})
}
