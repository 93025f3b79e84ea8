package elizaws

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

const (
	// maxFrame bounds what a client sends at once, in bytes, as Eliza does; more closes with 1009.
	maxFrame = 64 << 10
	// authLimit is how long a socket may take to authenticate.
	authLimit = 10 * time.Second
	// replay is how many signals a socket without a cursor is shown.
	replay = 120
	// statusEvery is the time between two statuses.
	statusEvery = 5 * time.Second
	// pingEvery is the time between two pings of the protocol; a client that answers none for as long again is gone.
	pingEvery = 20 * time.Second
	// maxAnswers bounds the answers that wait to be written; a client that asks on is not read until they are.
	maxAnswers = 16
	// closeLimit is how long a client may take to say goodbye.
	closeLimit = time.Second
	// maxClient bounds a clientId, in bytes.
	maxClient = 128
	// perAddress is how many sockets one address may have open: a family behind one router, not a flood.
	perAddress = 256
)

var (
	errGone   = errors.New("elizaws: the client is gone")
	errPolicy = errors.New("elizaws: unauthorized")
)

// socket is one WebSocket at /ws.
type socket struct {
	s      *surface
	r      *http.Request
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	client string
	after  int64 // the last signal that the client has; -1 where it told none
	frames *hub.Cursor

	answers chan []byte // of the reader to the writer
	active  atomic.Bool // it is authenticated
	writing atomic.Bool // a frame is on its way to a client that perhaps takes nothing
	tasks   sync.WaitGroup

	mu     sync.Mutex
	id     server.Identity
	expiry *time.Timer
}

// clientFrame is what clients send. Whatever else they send is ignored.
type clientFrame struct {
	Type         string          `json:"type"`
	Token        json.RawMessage `json:"token"`
	Conversation json.RawMessage `json:"conversationId"`
	Seq          int64           `json:"seq"`
}

// conversation is the one that a frame names; empty where it names none.
func (f *clientFrame) conversation() (id string) {
	if json.Unmarshal(f.Conversation, &id) != nil || len(id) > maxClient {
		return ""
	}
	return id
}

// socket answers GET /ws.
func (s *surface) socket(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	id := server.IdentityOf(r.Context())
	if q := r.URL.Query(); q.Has("token") && s.srv.TokenNeeded() {
		if !s.opt.QueryToken {
			return server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "tokens in the query are not taken; send an auth message, or set ELIZA_ALLOW_WS_QUERY_TOKEN=1")
		}
		if !known(id.Principal) {
			var err error
			if id, err = s.srv.Authenticate(r, q.Get("token")); err != nil {
				s.srv.Metrics().Unauthorized(true)
				return err
			}
		}
	}
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	leave, err := s.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the server has looked at Origin, by its own configuration
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil //nolint:nilerr // Accept has answered what was wrong with the handshake
	}
	conn.SetReadLimit(maxFrame)
	ctx, cancel := context.WithCancelCause(r.Context())
	c := &socket{s: s, r: r, conn: conn, ctx: ctx, cancel: cancel, client: clientID(r), after: lastEvent(r), answers: make(chan []byte, maxAnswers)}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(over); c.goodbye() })
	err = c.run(id)
	if stop() {
		c.close(err)
	} else {
		<-over
	}
	cancel(err)
	c.tasks.Wait()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	return nil
}

func known(p gateway.Principal) bool { return p.Admin || p.Subject != "" }

// clientID is how a client names itself; what is no name is none.
func clientID(r *http.Request) string {
	id := r.URL.Query().Get("clientId")
	if id == "" || len(id) > maxClient {
		return ""
	}
	for _, b := range []byte(id) {
		if (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') && b != '.' && b != '_' && b != '-' {
			return ""
		}
	}
	return id
}

// lastEvent is the last signal that the client has, -1 where it tells none.
func lastEvent(r *http.Request) int64 {
	q := r.URL.Query()
	for _, name := range []string{"lastEventId", "since"} {
		if n, ok := signals.ParseID(q.Get(name)); ok {
			return n
		}
	}
	return -1
}

// run authenticates and reads until the socket ends. Its error is why.
func (c *socket) run(id server.Identity) error {
	greeting := []byte(nil)
	if !known(id.Principal) {
		var err error
		if id, err = c.authenticate(); err != nil {
			return err
		}
		greeting = []byte(`{"type":"auth-ok"}`)
	}
	leave, err := c.s.gw.AddViewer(id.Principal)
	if err != nil {
		return err
	}
	defer leave()
	c.prove(id)
	c.active.Store(true)
	c.frames = c.s.opt.Hub.Join()
	defer c.s.opt.Hub.Look(c.frames, gateway.Principal{}, "")
	positions := c.s.gw.Positions(c.who()) // before anything is answered, so that nothing that comes after it is missed
	c.tasks.Go(func() { c.cancel(c.write(greeting)) })
	c.tasks.Go(c.ping)
	c.tasks.Go(func() { c.attend(positions) })
	for {
		f, ok, err := c.read()
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		switch f.Type {
		case "ping":
			select {
			case c.answers <- []byte(`{"type":"pong"}`):
			case <-c.ctx.Done():
				return context.Cause(c.ctx)
			}
		case "active-conversation":
			id := f.conversation()
			c.s.opt.Hub.Look(c.frames, c.who(), id)
			if id != "" {
				c.markRead(id, 0)
			}
		case "conversation-read":
			if id := f.conversation(); id != "" {
				c.markRead(id, f.Seq)
			}
		case "auth":
			c.renew(f)
		}
	}
}

// read returns the next frame. ok is false where it is none that anybody understands. It has no context, whose end would take
// the connection along before goodbye.
func (c *socket) read() (f clientFrame, ok bool, err error) {
	kind, b, err := c.conn.Read(context.Background())
	if err != nil {
		return f, false, errors.Join(errGone, err)
	}
	if kind != websocket.MessageText || server.Unmarshal(b, &f, false) != nil {
		return clientFrame{}, false, nil
	}
	return f, true, nil
}

// authenticate waits for a token. Its error is errPolicy unless the socket itself ended.
func (c *socket) authenticate() (id server.Identity, err error) {
	limit := time.AfterFunc(authLimit, func() { c.cancel(errPolicy) })
	defer limit.Stop()
	f, ok, err := c.read()
	if err != nil {
		return id, err
	}
	var token string
	if !ok || f.Type != "auth" || json.Unmarshal(f.Token, &token) != nil {
		return id, errPolicy
	}
	if id, err = c.s.srv.Authenticate(c.r, token); err != nil {
		c.s.srv.Metrics().Unauthorized(true)
		return id, errPolicy
	}
	return id, nil
}

// renew takes a newer token of the same somebody. Any other is ignored, as Eliza ignores an auth that is not needed.
func (c *socket) renew(f clientFrame) {
	var token string
	if c.who().Admin || json.Unmarshal(f.Token, &token) != nil || token == "" {
		return
	}
	id, err := c.s.srv.Authenticate(c.r, token)
	if p := c.who(); err == nil && id.Admin == p.Admin && id.Tenant == p.Tenant && id.Subject == p.Subject {
		c.prove(id)
	}
}

// prove takes a proof of who asks; the socket ends with it.
func (c *socket) prove(id server.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if !id.Expires.IsZero() {
		c.expiry = time.AfterFunc(time.Until(id.Expires), func() { c.cancel(server.ErrExpired) })
	}
}

func (c *socket) who() gateway.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id.Principal
}

// ping finds out whether the client is still there. As put's, its context is not the socket's, whose end would take the connection
// along before goodbye.
func (c *socket) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		// Behind a frame that the client does not take, a ping would be given up after 5 s by the WebSocket's own limit; how long
		// such a client lives is the stall limit's to say.
		if c.writing.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.s.srv.Options().Stall)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil && !c.writing.Load() {
			c.cancel(errGone)
			return
		}
	}
}

// goodbye runs once when the socket's context ends by anything but its client.
func (c *socket) goodbye() { c.close(context.Cause(c.ctx)) }

// last tells the client that the gateway restarts, since the writer may have ended before it came to that. A client that takes
// nothing is left by close.
func (c *socket) last() {
	if b, err := json.Marshal(c.s.now(true, false, true)); err == nil {
		_ = c.conn.Write(context.Background(), websocket.MessageText, b)
	}
}

// close tells the client why, by the code.
func (c *socket) close(cause error) {
	code, words := websocket.StatusCode(0), ""
	switch {
	case errors.Is(cause, errPolicy):
		code, words = websocket.StatusPolicyViolation, "Unauthorized"
	case errors.Is(cause, server.ErrExpired):
		code, words = websocket.StatusPolicyViolation, "the token has expired"
	case errors.Is(cause, server.ErrShutdown):
		code, words = websocket.StatusServiceRestart, "restarting"
	case errors.Is(cause, errGone):
	case server.Describe(cause).Status == http.StatusUnauthorized: // its session was ended
		code, words = websocket.StatusPolicyViolation, "Unauthorized"
	case server.Describe(cause).Status == http.StatusTooManyRequests:
		code, words = websocket.StatusTryAgainLater, "too many connections"
	}
	if code != 0 {
		late := time.AfterFunc(closeLimit, func() { _ = c.conn.CloseNow() })
		defer late.Stop()
		if code == websocket.StatusServiceRestart && c.active.Load() {
			c.last()
		}
		_ = c.conn.Close(code, words)
	}
	_ = c.conn.CloseNow()
}
