package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// socket is a connection to the gateway. Its fields are protected by the mutex of the server.
type socket struct {
	queue [][]byte // frames to send
	close int      // code with which it is closed, -1 for a broken connection, or 0
	// beat is when the last heartbeat arrived.
	beat    time.Time
	session *session // or nil before identify
	// window is the beginning of the minute in which frames are counted.
	window time.Time
	frames int // that the bot has sent since window
}

// push queues a frame, unless frames are lost at present. mu must be locked.
func (s *Server) push(k *socket, p payload) {
	if s.isMuted {
		return
	}
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // all payloads are made here
	}
	k.queue = append(k.queue, raw)
	s.wake()
}

// disconnect makes a connection end. mu must be locked.
func (s *Server) disconnect(k *socket, code int) {
	k.close = cmp.Or(k.close, code)
	if o := k.session; o != nil {
		if o.socket == k {
			o.socket, o.lostAt = nil, time.Now()
		}
		if isFinal(code) {
			delete(s.sessions, o.id)
		}
		k.session = nil
	}
	s.wake()
}

// connect serves a connection to the gateway until it ends.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	conn.SetReadLimit(1 << 20)
	k := &socket{beat: time.Now(), window: time.Now()}
	s.mu.Lock()
	s.sockets[k] = true
	s.push(k, payload{Op: 10, Data: map[string]any{"heartbeat_interval": s.opt.Heartbeat.Milliseconds()}})
	if v := r.URL.Query().Get("v"); v != "9" && v != "10" {
		s.disconnect(k, 4012)
	}
	if r.URL.Query().Get("encoding") != "json" {
		s.disconnect(k, 4002)
	}
	s.mu.Unlock()
	end := make(chan struct{})
	go func() {
		defer close(end)
		s.receiveFrom(ctx, conn, k)
	}()
	s.feed(ctx, conn, k, end)
	_ = conn.CloseNow() // ends receiveFrom
	cancel()
	<-end
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect(k, -1)
	delete(s.sockets, k)
	s.wake()
}

// receiveFrom receives frames until the connection ends.
func (s *Server) receiveFrom(ctx context.Context, conn *websocket.Conn, k *socket) {
	for {
		_, raw, err := conn.Read(ctx)
		s.mu.Lock()
		if err != nil {
			if code := websocket.CloseStatus(err); code == 1000 || code == 1001 {
				s.disconnect(k, int(code)) // the bot gives its session up
			}
			s.mu.Unlock()
			return
		}
		if code := s.receive(k, raw); code != 0 {
			s.disconnect(k, code)
		}
		s.mu.Unlock()
	}
}

// feed sends the queued frames until the connection ends or has to be closed. A bot that sends no heartbeat is disconnected.
func (s *Server) feed(ctx context.Context, conn *websocket.Conn, k *socket, end <-chan struct{}) {
	for {
		s.mu.Lock()
		queue, code, changed := k.queue, k.close, s.changed
		k.queue = nil
		wait := time.Until(k.beat.Add(s.opt.Heartbeat * 3 / 2))
		if wait <= 0 && code == 0 {
			s.violate("no heartbeat in %v", s.opt.Heartbeat*3/2)
			s.disconnect(k, 4009)
			code = k.close
		}
		s.mu.Unlock()
		for _, raw := range queue {
			if conn.Write(ctx, websocket.MessageText, raw) != nil {
				return
			}
		}
		if code > 0 {
			_ = conn.Close(websocket.StatusCode(code), "closed by the fake")
		}
		if code != 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-end:
			timer.Stop()
			return
		case <-timer.C:
		}
		timer.Stop()
	}
}
