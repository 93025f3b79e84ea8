package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// maxFrame is the size of the largest frame of a client in bytes.
	maxFrame = 64 << 10
	// writeLimit is how long a frame may take to be written. Then the connection is closed; its client can resume. It
	// applies to one frame, so a client that takes a long answer slowly, but steadily, stays connected.
	writeLimit = 10 * time.Second
	// pingEvery is the interval between two pings, and pingLimit how long the answer may take. Proxies often close
	// connections that are idle for a minute.
	pingEvery = 30 * time.Second
	pingLimit = 15 * time.Second
)

// errTooSlow means that a client of the seed's protocol is so far behind that its frames are gone.
var errTooSlow = errors.New("web: the reader is too slow")

// socket is one connection of a visitor. Its writes may be called concurrently, because the library serializes them;
// one goroutine reads.
type socket struct {
	c    *Channel
	run  *service
	room *room
	conn *websocket.Conn
	// isAdmitted means that the visitor needs no pairing code, and isLocal that the visitor is on this machine.
	isAdmitted, isLocal bool
}

// subprotocol is that of clients that know all frames. Such a client can name its session as a second subprotocol: proxies log
// addresses, but not this header, and it is the only one that a browser lets a page set.
const subprotocol = "leat.chat"

// sessionOf returns the session token of a request for a socket, or "", and whether its client knows only the frames of the seed.
func sessionOf(r *http.Request) (token string, isPlain bool) {
	query := r.URL.Query()
	token, isPlain = query.Get("session"), !query.Has("session") && !query.Has("after")
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.TrimSpace(name)
			if name == subprotocol {
				isPlain = false
			} else if strings.HasPrefix(name, tokenPrefix) {
				token = name
			}
		}
	}
	return token, isPlain
}

// serveSocket answers GET /ws. A session token resumes a session, and the parameter after is the number of the last frame that the
// client has. Limits are checked before the handshake, so a refused client gets a status and Retry-After. A token in
// a wrong form is treated as none: the client gets a new session in the first frame.
func (c *Channel) serveSocket(w http.ResponseWriter, r *http.Request) {
	run, leave := c.join()
	if run == nil {
		refuseStopped(w)
		return
	}
	defer leave()
	address := addressOf(r)
	if wait, ok := c.limits.connect(address); !ok {
		refuseRate(w, wait)
		return
	}
	defer c.limits.disconnect(address)
	token, isPlain := sessionOf(r)
	chat, isNew := chatOf(token), false
	if chat == "" {
		token, isNew = newToken(), true
		chat = chatOf(token)
	}
	room := c.rooms.enter(chat)
	defer c.rooms.leave(room)
	if !c.rooms.join(room) {
		refuseRate(w, 0)
		return
	}
	defer c.rooms.quit(room)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: true, // ServeHTTP has checked the origin
	})
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(maxFrame)
	s := &socket{c: c, run: run, room: room, conn: conn, isLocal: isLocal(r)}
	s.isAdmitted = c.options.Public || s.isLocal
	rd := &reader{room: room, isPlain: isPlain, write: s.write}
	if c.source != nil {
		rd.history = func(ctx context.Context) (*history, error) { return c.historyOf(ctx, room) }
	}
	rd.at, err = strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	greeting := frame{Type: typeSession, Session: token}
	switch {
	case isNew:
		rd.at = room.position()
		greeting.ID = rd.at
	case err != nil:
		rd.at = -1 // a history
	}
	s.serve(r.Context(), rd, greeting)
}

// serve writes and reads frames until the connection, the channel or the server ends. Two goroutines help it: one
// writes the frames of the room, and one sends pings. Each way to an end cancels ctx, and serve waits for both before
// it returns, so that nothing uses the room after that.
func (s *socket) serve(server context.Context, rd *reader, greeting frame) {
	// The context of a hijacked request doesn't end with its client, but a server can end it when it shuts down.
	ctx, cancel := context.WithCancel(s.run.ctx)
	defer context.AfterFunc(server, cancel)()
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer cancel()
		err := s.write(ctx, greeting)
		if err == nil {
			err = rd.run(ctx)
		}
		code, reason := websocket.StatusInternalError, "the conversation can't be read"
		switch {
		case s.run.ctx.Err() != nil || server.Err() != nil:
			code, reason = websocket.StatusGoingAway, "the gateway is shutting down"
		case ctx.Err() != nil, errors.Is(err, errDisconnected):
			_ = s.conn.CloseNow() // ends the read loop
			return
		case errors.Is(err, errTooSlow):
			code, reason = websocket.StatusTryAgainLater, "the reader is too slow"
		default:
			s.c.log.Warn("chat can't be shown", "error", err)
		}
		_ = s.conn.Close(code, reason) // it fails if the connection is broken, and then it is closed as well
	})
	// Reads continue when ctx ends, because interrupting one closes the connection without a handshake.
	readCtx, cancelRead := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRead()
	closed := make(chan struct{})
	tasks.Go(func() { s.ping(ctx, closed, cancelRead) })
	for {
		kind, b, err := s.conn.Read(readCtx)
		if err != nil {
			break
		}
		if kind != websocket.MessageText {
			_ = s.conn.Close(websocket.StatusUnsupportedData, "frames are JSON in text messages")
			break
		}
		if err := s.receive(ctx, b); err != nil {
			break
		}
	}
	close(closed)
	cancel()
	_ = s.conn.CloseNow()
	tasks.Wait()
}

// write writes a frame. A client that takes it too slowly is disconnected. The error is errDisconnected, unless the
// frame can't be encoded. The connection can't be used after it.
func (s *socket) write(ctx context.Context, f frame) error {
	b, err := f.encode()
	if err != nil {
		return err
	}
	// The write has its own limit and continues when ctx ends, because interrupting it would break the connection.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if err := s.conn.Write(limited, websocket.MessageText, b); err != nil {
		return errDisconnected
	}
	return nil
}

// errDisconnected means that a frame could not be written.
var errDisconnected = errors.New("web: disconnected")

// ping closes the connection if its client doesn't answer. Without it, a client that has lost its network would stay for hours. When ctx
// ends, the connection has closeLimit for its handshake; then it is cut.
func (s *socket) ping(ctx context.Context, closed <-chan struct{}, cancelRead func()) {
	for retry.Sleep(ctx, pingEvery) == nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit) // interrupting it would break the connection
		err := s.conn.Ping(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = s.conn.CloseNow()
			return
		}
	}
	select {
	case <-closed:
	case <-time.After(closeLimit):
		cancelRead()
	}
}
