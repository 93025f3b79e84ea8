package discord

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	// sessionLife is how long a session without a connection can be resumed.
	sessionLife = 5 * time.Minute
	// identifyGap is the least time between the starts of two sessions, and maxStarts their number in a day.
	identifyGap = 5 * time.Second
	maxStarts   = 1000
)

// Intents that decide about events.
const (
	intentGuildMessages  = 1 << 9
	intentDirectMessages = 1 << 12
	intentContent        = 1 << 15
	// knownIntents are all bits that have a meaning; 17 to 19 and 22 and 23 have none.
	knownIntents = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
)

// session is what a bot gets after identify. It survives its connection for a while.
type session struct {
	id      string
	intents int
	seq     int
	events  []payload // all of them, so that those that were missed can be sent again
	socket  *socket   // or nil
	lostAt  time.Time // when it lost its connection
}

// payload is a frame of the gateway.
type payload struct {
	// Op is the opcode of the frame.
	Op   int `json:"op"`
	Data any `json:"d"`
	// Seq is the number of an event, and nil for other frames.
	Seq *int `json:"s"`
	// Type is the name of an event.
	Type string `json:"t,omitempty"`
}

// gatewayURL returns the address of the gateway. mu must be locked.
func (s *Server) gatewayURL() string {
	return strings.Replace(s.base, "http", "ws", 1) + "/gateway"
}

// gatewayBot returns the address of the gateway and how many sessions may be begun.
func (c *call) gatewayBot() (any, *refusal) {
	return map[string]any{"url": c.s.gatewayURL(), "shards": 1, "session_start_limit": map[string]any{
		"total": maxStarts, "remaining": maxStarts - c.s.starts, "reset_after": int((24 * time.Hour).Milliseconds()), "max_concurrency": 1,
	}}, nil
}

// dispatch sends an event to all sessions that have one of the intents, or to all if intents is 0. mu must be locked.
func (s *Server) dispatch(kind string, intents int, data func(*session) any) {
	for _, o := range s.sessions {
		if intents == 0 || o.intents&intents != 0 {
			s.send(o, kind, data(o))
		}
	}
	s.wake()
}

// send sends an event to a session. mu must be locked.
func (s *Server) send(o *session, kind string, data any) {
	o.seq++
	seq := o.seq
	p := payload{Data: data, Seq: &seq, Type: kind}
	o.events = append(o.events, p)
	// The older connection may be dead without the server's knowledge, so the newer one wins.
	if o.socket != nil {
		s.push(o.socket, p)
	}
}

// dispatchMessage sends MESSAGE_CREATE. Without the intent for the content it is hidden, unless the message is for the bot. mu must
// be locked.
func (s *Server) dispatchMessage(m *Message) {
	o := s.channels[m.Channel]
	intent := intentGuildMessages
	if o.kind == kindDirect {
		intent = intentDirectMessages
	}
	if m.Ephemeral {
		return
	}
	s.dispatch("MESSAGE_CREATE", intent, func(to *session) any {
		isForBot := o.kind == kindDirect
		for _, w := range m.mention {
			isForBot = isForBot || w.User == botID
		}
		object := s.object(m, isForBot || to.intents&intentContent != 0)
		if o.guild != "" {
			object["guild_id"] = o.guild
			if m.person != nil {
				object["member"] = map[string]any{"nick": nil, "roles": []any{}}
			}
		}
		return object
	})
}

// receive handles a frame of the bot. A result that isn't 0 is the code with which the connection is closed. mu must be locked.
func (s *Server) receive(k *socket, raw []byte) (code int) {
	const (
		opHeartbeat, opIdentify, opPresence, opVoice, opResume, opMembers = 1, 2, 3, 4, 6, 8
		maxFrame, maxRate                                                 = 4096, 120
	)
	at := time.Now()
	if at.Sub(k.window) > time.Minute {
		k.window, k.frames = at, 0
	}
	k.frames++
	var frame struct {
		Op   *int            `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	switch {
	case k.frames > maxRate:
		return 4008
	case len(raw) > maxFrame || json.Unmarshal(raw, &frame) != nil || frame.Op == nil:
		return 4002
	}
	switch op := *frame.Op; {
	case op == opHeartbeat:
		k.beat = at
		s.push(k, payload{Op: 11})
	// A connection has one session for its whole life.
	case op == opIdentify && k.session != nil:
		return 4005
	case op == opIdentify:
		return s.identify(k, frame.Data)
	case op == opResume:
		return s.resume(k, frame.Data)
	// The three are accepted without an effect, because libraries send them.
	case op != opPresence && op != opVoice && op != opMembers:
		return 4001
	case k.session == nil:
		return 4003
	}
	return 0
}

// isToken reports whether the gateway accepts a token. Some clients send it with the prefix of the HTTP API.
func (s *Server) isToken(token string) bool { return strings.TrimPrefix(token, "Bot ") == s.opt.Token }

// identify starts a session.
func (s *Server) identify(k *socket, raw []byte) (code int) {
	var data struct {
		Token      string         `json:"token"`
		Intents    *int           `json:"intents"`
		Properties map[string]any `json:"properties"`
		Shard      []int          `json:"shard"`
	}
	if json.Unmarshal(raw, &data) != nil || data.Intents == nil || data.Properties == nil {
		return 4002
	}
	switch {
	case !s.isToken(data.Token):
		return 4004
	case len(data.Shard) > 0 && (len(data.Shard) != 2 || data.Shard[0] >= data.Shard[1]):
		return 4010
	case *data.Intents&^knownIntents != 0:
		return 4013
	case *data.Intents&intentContent != 0 && s.opt.NoMessageContent:
		return 4014
	// The platform doesn't close the connection then: the bot waits and identifies itself again on it.
	case time.Since(s.identified) < identifyGap:
		s.push(k, payload{Op: 9, Data: false})
		return 0
	}
	s.identified = time.Now()
	s.starts++
	o := &session{id: "session" + strconv.Itoa(s.starts), intents: *data.Intents, socket: k}
	s.sessions[o.id], k.session = o, o
	s.send(o, "READY", map[string]any{
		"v": 10, "user": s.user(), "guilds": []any{}, "session_id": o.id, "resume_gateway_url": s.gatewayURL(), "application": s.application(),
		"private_channels": []any{},
	})
	s.wake()
	return 0
}

// resume continues a session and sends the events that were missed.
func (s *Server) resume(k *socket, raw []byte) (code int) {
	var data struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     *int   `json:"seq"`
	}
	if json.Unmarshal(raw, &data) != nil || data.Seq == nil {
		return 4002
	}
	o := s.sessions[data.Session]
	switch {
	case !s.isToken(data.Token):
		return 4004
	case o == nil, o.socket == nil && time.Since(o.lostAt) > sessionLife:
		delete(s.sessions, data.Session)
		s.push(k, payload{Op: 9, Data: false})
		return 0
	// A bot with a position in the future has mixed up two sessions.
	case *data.Seq > o.seq:
		delete(s.sessions, data.Session)
		return 4007
	}
	if o.socket != nil {
		s.disconnect(o.socket, 4000)
	}
	o.socket, k.session = k, o
	for _, p := range o.events {
		if *p.Seq > *data.Seq {
			s.push(k, p)
		}
	}
	s.send(o, "RESUMED", map[string]any{})
	s.wake()
	return 0
}

// Drop breaks all connections to the gateway without a word. The sessions can be resumed.
func (s *Server) Drop() { s.CloseGateway(-1) }

// CloseGateway closes all connections to the gateway with a code. After 4007 and 4009 and after fatal codes the sessions are gone.
func (s *Server) CloseGateway(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.sockets {
		s.disconnect(k, code)
	}
}

// AskReconnect sends the request to reconnect and resume.
func (s *Server) AskReconnect() { s.pushAll(payload{Op: 7}) }

// Invalidate sends that the sessions are invalid. Unless they can be resumed, they are gone.
func (s *Server) Invalidate(canResume bool) {
	s.pushAll(payload{Op: 9, Data: canResume})
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.sockets {
		if !canResume && k.session != nil {
			delete(s.sessions, k.session.id)
			k.session.socket, k.session = nil, nil
		}
	}
}

// AskHeartbeat asks for a heartbeat at once.
func (s *Server) AskHeartbeat() { s.pushAll(payload{Op: 1}) }

// pushAll sends a frame on all connections.
func (s *Server) pushAll(p payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.sockets {
		s.push(k, p)
	}
}

// Mute loses all frames to the bot, as on connections that are dead without being closed, or ends that. Lost events are sent again when
// a session is resumed.
func (s *Server) Mute(isMuted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isMuted = isMuted
}

// Sessions returns how many sessions were started: resumed ones don't count again.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Connections returns how many connections to the gateway have a session.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for k := range s.sockets {
		if k.session != nil {
			n++
		}
	}
	return n
}

// isFinal reports whether a session can't be resumed after it was closed with a code.
func isFinal(code int) bool {
	return code == 1000 || code == 1001 || code == 4004 || code == 4007 || code == 4009 || code >= 4010 && code <= 4014
}
