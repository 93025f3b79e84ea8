package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// socket is one WebSocket: many conversations and commands.
type socket struct {
	n    *native
	r    *http.Request
	conn *websocket.Conn
	ctx  context.Context // ends with the socket

	cancel  context.CancelCauseFunc
	who     atomic.Pointer[server.Identity] // who asks, and until when that is proven
	renewed chan struct{}                   // one slot: who has changed

	tasks sync.WaitGroup // subscriptions, commands, heartbeats

	// writing is a lock with one slot for who writes; a subscription that waits for it looks anew at its feed when it has it.
	writing chan struct{}
	stall   *time.Timer // cuts the socket when a write gets nowhere
	wrote   atomic.Int64

	// The reader's own.
	subs    map[string]*subscription
	pending chan struct{} // one slot a command
	lanes   lanes
	attends bool // it is told of read positions
}

// socket answers GET /api/ws.
func (n *native) socket(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the server has looked at Origin, by its own configuration
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil //nolint:nilerr // Accept has answered what was wrong with the handshake
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	s := &socket{
		n: n, r: r, conn: conn, ctx: ctx, cancel: cancel, renewed: make(chan struct{}, 1),
		writing: make(chan struct{}, 1), subs: map[string]*subscription{}, pending: make(chan struct{}, MaxPending),
	}
	id := server.IdentityOf(r.Context())
	s.who.Store(&id)
	s.stall = time.AfterFunc(n.s.Options().Stall, func() { cancel(errGone); _ = conn.CloseNow() })
	s.stall.Stop()
	// A write or read that hangs ends with the context, after a moment to say goodbye.
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(gone); s.goodbye() })
	err = s.run()
	if !stop() {
		<-gone
		err = context.Cause(ctx)
	}
	cancel(err)
	_ = conn.CloseNow()
	s.tasks.Wait()
	s.stall.Stop()
	if server.Describe(err).Status == http.StatusInternalServerError && !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// goodbye runs once when the socket's context ends. Where that is not the client's doing it is told why, and by the code of
// the close whether to come back.
func (s *socket) goodbye() {
	cause := context.Cause(s.ctx)
	code, words := websocket.StatusCode(0), ""
	switch {
	case errors.Is(cause, server.ErrShutdown):
		code, words = websocket.StatusServiceRestart, "restarting"
	case errors.Is(cause, server.ErrExpired):
		code, words = closeExpired, "the token has expired"
	case server.Describe(cause).Status == http.StatusUnauthorized: // its session was ended
		code, words = websocket.StatusPolicyViolation, "Unauthorized"
	}
	if code != 0 {
		late := time.AfterFunc(endLimit, func() { _ = s.conn.CloseNow() })
		defer late.Stop()
		select {
		case s.writing <- struct{}{}:
			if b, err := json.Marshal(newError("error", "", "", cause)); err == nil {
				_ = s.conn.Write(context.Background(), websocket.MessageText, b)
			}
			<-s.writing
			_ = s.conn.Close(code, words)
		case <-time.After(endLimit):
		}
	}
	_ = s.conn.CloseNow()
}

// run authenticates, greets and reads until the socket ends. Its error is why, for the log.
func (s *socket) run() error {
	if err := s.authenticate(); err != nil {
		s.unauthorized(err)
		return errGone
	}
	s.conn.SetReadLimit(MaxCommand)
	if err := s.send(helloFrame{Type: "hello", Protocol: Protocol, Expires: milliseconds(s.who.Load().Expires)}); err != nil {
		return err
	}
	s.tasks.Go(s.heartbeat)
	s.tasks.Go(s.watch)
	for {
		f, err := s.read()
		switch {
		case err == nil:
			err = s.take(f)
		case server.Describe(err).Status == http.StatusBadRequest:
			err = s.nonsense(f, err)
		}
		if err != nil {
			return err
		}
	}
}

// authenticate waits for the token of a socket whose handshake brought none.
func (s *socket) authenticate() error {
	if p := s.principal(); p.Admin || p.Subject != "" {
		return nil
	}
	bad := server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "the first frame must be auth with a valid token, within %v", authLimit)
	s.conn.SetReadLimit(authFrame)
	arrived := make(chan struct{})
	s.tasks.Go(func() {
		limit := time.NewTimer(authLimit)
		defer limit.Stop()
		select {
		case <-limit.C:
			s.unauthorized(bad)
		case <-arrived:
		case <-s.ctx.Done():
		}
	})
	f, err := s.read()
	close(arrived)
	if err != nil || f.Type != "auth" {
		return bad
	}
	id, err := s.n.s.Authenticate(s.r, f.Token)
	if err == nil {
		s.who.Store(&id)
	} else {
		s.n.s.Metrics().Unauthorized(true)
	}
	return err
}

// unauthorized tells why, and closes as clients of Eliza know it.
func (s *socket) unauthorized(err error) {
	_ = s.send(newError("error", "", "", err)) // the client may be gone; there is nobody else to tell
	_ = s.conn.Close(websocket.StatusPolicyViolation, "Unauthorized")
}

// read returns the next frame. An error that Describe gives the status 400 is the frame's alone; any other is the socket's.
// It has no context, whose end would take the connection along before goodbye.
func (s *socket) read() (f clientFrame, err error) {
	kind, b, err := s.conn.Read(context.Background())
	if err != nil {
		return f, fmt.Errorf("%w: %w", errGone, err)
	}
	if kind != websocket.MessageText {
		return f, server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "frames are text, not binary")
	}
	if err := server.Unmarshal(b, &f, true); err != nil {
		var who struct{ Type, ID, Conversation string }
		_ = json.Unmarshal(b, &who) // as far as it goes, so that whoever waits for an answer gets it
		return clientFrame{Type: who.Type, ID: who.ID, Conversation: who.Conversation}, err
	}
	return f, nil
}

// nonsense answers a frame that can't be read; the socket goes on.
func (s *socket) nonsense(f clientFrame, err error) error {
	switch f.Type {
	case "command", "create", "read":
		return s.send(newError("rejected", f.ID, f.Conversation, err))
	}
	return s.send(newError("error", f.ID, "", err)) // with a conversation it would end a subscription
}

// send writes one frame.
func (s *socket) send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	return s.sendRaw(b)
}

func (s *socket) sendRaw(b []byte) error {
	if err := s.lock(s.ctx); err != nil {
		return err
	}
	defer s.unlock()
	return s.put(b)
}

func (s *socket) lock(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return errGone
	}
	if ctx.Err() != nil { // both were ready
		s.unlock()
		return errGone
	}
	return nil
}

func (s *socket) tryLock() bool {
	select {
	case s.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *socket) unlock() { <-s.writing }

// put writes under the lock. It has no context, which costs more than the write: the stall timer and the end of the socket's
// context close the connection, and so end it.
func (s *socket) put(b []byte) error {
	s.stall.Reset(s.n.s.Options().Stall)
	err := s.conn.Write(context.Background(), websocket.MessageText, b)
	s.stall.Stop()
	s.wrote.Store(time.Now().UnixNano())
	if err != nil {
		return errGone
	}
	return nil
}

// heartbeat says that the socket lives when nothing else did.
func (s *socket) heartbeat() {
	every := s.n.s.Options().Heartbeat
	beat := time.NewTimer(every)
	defer beat.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-beat.C:
		}
		if silent := time.Since(time.Unix(0, s.wrote.Load())); silent < every {
			beat.Reset(every - silent)
			continue
		}
		beat.Reset(every)
		if !s.tryLock() {
			continue // something is being written
		}
		err := s.put(pingFrame)
		s.unlock()
		if err != nil {
			return // the reader finds out too
		}
	}
}
