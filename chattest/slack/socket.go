package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// ackLimit is how long a bot may take to acknowledge an envelope.
	ackLimit = 3 * time.Second
	// maxAttempts is how often an envelope is delivered.
	maxAttempts = 4
	// pingGap is the time between two pings, and pingLimit how long the answer to one may take.
	pingGap   = 10 * time.Second
	pingLimit = 5 * time.Second
	// closeLimit is how long a connection stays open after the bot was asked to open another.
	closeLimit = 10 * time.Second
)

// connection is a connection of Socket Mode.
type connection struct {
	base string // the address of the server, as the client called it

	// The fields below are protected by the server's mutex.
	reason         string    // of the disconnect that is to be sent, or empty
	isClosed       bool      // the connection is to be cut
	disconnectedAt time.Time // when a disconnect was sent, or zero
	ping           time.Time // when the next ping is due
}

// openConnection returns an address with a ticket that is valid once.
func (c *call) openConnection() *answer {
	ticket := fmt.Sprint("ticket", c.s.number())
	c.s.tickets[ticket] = true
	return accept(map[string]any{"url": address(c.r, "ws", "/link/?ticket="+ticket)})
}

// link answers the request that opens a connection. Each address works once.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	ok := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !ok {
		http.Error(w, "unknown ticket", http.StatusUnauthorized)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // clients send the origin of Slack
	if err != nil {
		return // it has answered the request
	}
	c := &connection{base: address(r, "http", ""), ping: time.Now().Add(pingGap)}
	ctx, cancel := context.WithCancel(r.Context())
	var reader sync.WaitGroup
	defer reader.Wait()
	defer s.leave(c)
	defer ws.CloseNow()
	defer cancel()
	reader.Go(func() {
		defer cancel()
		s.readAcks(ctx, ws)
	})
	s.mu.Lock()
	s.connections[c] = true
	n := len(s.connections)
	s.mu.Unlock()
	hello := map[string]any{
		"type": "hello", "num_connections": n, "connection_info": map[string]any{"app_id": "A1"},
		"debug_info": map[string]any{"host": "fake", "build_number": 1, "approximate_connection_time": 3600},
	}
	if writeFrame(ctx, ws, hello) == nil {
		s.serve(ctx, c, ws)
	}
}

// leave ends a connection. What it didn't acknowledge is delivered to another.
func (s *Server) leave(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
	for _, e := range s.envelopes {
		if e.holder == c {
			e.holder = nil
		}
	}
	s.wake()
}

// serve writes to a connection until it ends.
func (s *Server) serve(ctx context.Context, c *connection, ws *websocket.Conn) {
	for {
		s.mu.Lock()
		frame, isPing, at := s.next(c, time.Now())
		changed, isClosed := s.changed, c.isClosed
		s.mu.Unlock()
		var err error
		switch {
		case isClosed:
			return
		case isPing:
			ping, cancel := context.WithTimeout(ctx, pingLimit)
			err = ws.Ping(ping)
			cancel()
		case frame != nil:
			err = writeFrame(ctx, ws, frame)
		default:
			timer := time.NewTimer(time.Until(at))
			select {
			case <-timer.C:
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			}
			timer.Stop()
		}
		if err != nil {
			return
		}
	}
}

// next returns what is to be written to a connection: a frame or a ping, or when to look again. mu must be locked.
func (s *Server) next(c *connection, current time.Time) (frame map[string]any, isPing bool, at time.Time) {
	if c.reason != "" {
		frame = map[string]any{"type": "disconnect", "reason": c.reason, "debug_info": map[string]any{"host": "fake"}}
		c.reason, c.disconnectedAt = "", current
		return frame, false, current
	}
	if !current.Before(c.ping) {
		c.ping = current.Add(pingGap)
		return nil, true, current
	}
	at = c.ping
	if !c.disconnectedAt.IsZero() {
		if end := c.disconnectedAt.Add(closeLimit); current.Before(end) {
			at = earliest(at, end)
		} else {
			c.isClosed = true
		}
	}
	for _, e := range s.envelopes {
		if e.holder == c && !current.Before(e.due) {
			s.violate("%s %s was not acknowledged within %v", e.kind, e.id, ackLimit)
			e.holder = nil
		}
		if e.holder == c {
			at = earliest(at, e.due)
		}
		// An envelope that was delivered often enough stays in the list, so that a late acknowledgement is still accepted.
		if e.holder != nil || !c.disconnectedAt.IsZero() || e.attempts == maxAttempts {
			continue
		}
		e.holder, e.due = c, current.Add(ackLimit)
		frame = map[string]any{"type": e.kind, "envelope_id": e.id, "payload": e.payload, "accepts_response_payload": e.kind != "events_api"}
		if e.attempts > 0 {
			// Slack marks a repetition in the same way.
			frame["retry_attempt"], frame["retry_reason"] = e.attempts, "timeout"
		}
		e.attempts++
		return frame, false, current
	}
	return nil, false, at
}

// earliest returns the earlier of two times.
func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// readAcks reads acknowledgements until the connection ends.
func (s *Server) readAcks(ctx context.Context, ws *websocket.Conn) {
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var ack struct {
			ID string `json:"envelope_id"`
		}
		s.mu.Lock()
		if json.Unmarshal(raw, &ack) != nil || ack.ID == "" {
			s.violate("a frame that acknowledges nothing: %s", raw)
		}
		s.envelopes = slices.DeleteFunc(s.envelopes, func(e *envelope) bool { return e.id == ack.ID })
		s.wake()
		s.mu.Unlock()
	}
}

// writeFrame sends one frame, which is a text of JSON.
func writeFrame(ctx context.Context, ws *websocket.Conn, frame map[string]any) error {
	raw, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return ws.Write(ctx, websocket.MessageText, raw)
}

// Disconnect asks the bot to open another connection, for a reason such as refresh_requested. Those that are open get none of the
// following events and are closed after 10 s.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		c.reason = reason
	}
	s.wake()
}

// Drop cuts the connections without a warning.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		c.isClosed = true
	}
	s.wake()
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}
