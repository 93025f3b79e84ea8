package wecom

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxContent is the limit of a text, in bytes.
	maxContent = 20480
	// streamLife is how long after a person's message its stream may be updated.
	streamLife = 6 * time.Minute
	// maxFrame is the limit of a frame, in bytes: one with half a megabyte of a file in Base64.
	maxFrame = 2 << 20
	// writeLimit limits the sending of a frame to a bot that doesn't read.
	writeLimit = 5 * time.Second
)

// Options configure a [Server].
type Options struct {
	BotID, Secret string
	// AckDelay is the time until a frame is acknowledged.
	AckDelay time.Duration
	// Chaos, if set, is asked for a fault for each frame apart from subscriptions and pings. It is called by one goroutine at a
	// time, and returns nil for a frame that works.
	Chaos func(command string) *Fault
}

// Server is the fake. Make it with New.
type Server struct {
	opt Options

	mu         sync.Mutex // protects the fields below
	current    *session   // the subscribed connection, or nil
	chats      map[string][]*Message
	callbacks  map[string]*callback // by their request ids
	uploads    map[string]*upload
	limits     map[string]limit // by chat
	files      []File           // of people
	faults     []*Fault
	requests   []Request
	violations []string
	counter    int // of ids
}

// session is one connection.
type session struct {
	conn   *websocket.Conn
	host   string
	unsent map[string]bool // request ids whose acknowledgement was not sent yet
}

// callback is a message of a person, which can be answered for some minutes.
type callback struct {
	chat    string
	at      time.Time
	streams map[string]*Message
}

// Message is a message of the bot or of a person.
type Message struct {
	ID   string
	Bot  bool   // written by the bot
	Type string // stream, markdown, image, file
	Text string
	File *File
	// IsOpen means that the stream was not finished and its time isn't over, so that the person sees an animation.
	IsOpen bool
	// Versions are all texts that a stream had.
	Versions []string
	At       time.Time
	askedAt  time.Time // of a stream: when the person wrote
}

// File is a file in a message.
type File struct {
	Name    string
	Content []byte
	IsImage bool
}

// Request is a frame that the server got. Code is -1 if it was not acknowledged.
type Request struct {
	At      time.Time
	Command string
	ID      string
	Code    int
}

// New returns a server. A chat exists once a person has written in it.
func New(o Options) *Server {
	return &Server{opt: o, chats: map[string][]*Message{}, callbacks: map[string]*callback{}, uploads: map[string]*upload{}, limits: map[string]limit{}}
}

// frame is what both sides send.
type frame struct {
	Command string `json:"cmd,omitempty"`
	Headers struct {
		ID string `json:"req_id"`
	} `json:"headers"`
	Body    json.RawMessage `json:"body,omitempty"`
	Code    *int            `json:"errcode,omitempty"`
	Message string          `json:"errmsg,omitempty"`
}

// refusal is the error of a frame.
type refusal struct {
	code    int
	message string
}

// refuse returns a refusal with one of the platform's codes.
func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// The codes of refusals.
const (
	codeCredential = 40001
	codeParameter  = 40058
	codeChat       = 93006
	codeRequest    = 846605 // the request id isn't that of a callback
	codeExpired    = 846608 // the stream can't be updated any more
	codeUnknown    = 846604
)

// ServeHTTP implements [http.Handler]. It returns when the connection is closed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		s.download(w, name)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the answer has been written
	}
	conn.SetReadLimit(maxFrame)
	e := &session{conn: conn, host: r.Host, unsent: map[string]bool{}}
	defer s.forget(e)
	for {
		_, raw, err := conn.Read(context.Background()) // ends when the connection is closed
		if err != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil || f.Headers.ID == "" {
			_ = conn.Close(websocket.StatusInvalidFramePayloadData, "invalid frame")
			return
		}
		if !s.handle(e, &f) {
			_ = conn.CloseNow() // the connection is lost
			return
		}
	}
}

// handle carries out a frame and acknowledges it. It returns false if the connection has to be closed.
func (s *Server) handle(e *session, f *frame) bool {
	s.mu.Lock()
	if e.unsent[f.Headers.ID] {
		s.violations = append(s.violations, "a second frame before the first one was acknowledged: "+f.Command)
	}
	fault := cmp.Or(s.take(f.Command), &Fault{})
	request := Request{At: time.Now(), Command: f.Command, ID: f.Headers.ID, Code: -1}
	if fault.Before {
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		return false
	}
	var result any
	var failed *refusal
	switch failed = s.checkLimit(f, fault); {
	case failed != nil:
	case fault.Code != 0:
		failed = refuse(fault.Code, "fault")
	default:
		result, failed = s.run(e, f)
	}
	answer := frame{Headers: f.Headers, Code: new(int), Message: "ok"}
	if failed != nil {
		*answer.Code, answer.Message = failed.code, failed.message
	} else if result != nil {
		answer.Body, _ = json.Marshal(result) // maps of strings
	}
	isAnswered := !fault.After && !fault.Silent
	if isAnswered {
		request.Code = *answer.Code
		e.unsent[f.Headers.ID] = true
	}
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if isAnswered {
		send := func() {
			s.mu.Lock()
			delete(e.unsent, f.Headers.ID)
			s.mu.Unlock()
			if e.write(answer) && *answer.Code == codeChatRate {
				s.noteLimit(f)
			}
		}
		if s.opt.AckDelay > 0 {
			time.AfterFunc(s.opt.AckDelay, send)
		} else {
			send()
		}
	}
	return !fault.After && (failed == nil || failed.code != codeCredential)
}

// run carries out a frame. mu must be locked.
func (s *Server) run(e *session, f *frame) (any, *refusal) {
	if f.Command != "aibot_subscribe" && e != s.current {
		return nil, refuse(codeCredential, "not subscribed")
	}
	switch f.Command {
	case "aibot_subscribe":
		return nil, s.subscribe(e, f)
	case "ping":
		return nil, nil
	case "aibot_respond_msg":
		return nil, s.respond(f)
	case "aibot_send_msg":
		return nil, s.send(f)
	case "aibot_upload_media_init", "aibot_upload_media_chunk", "aibot_upload_media_finish":
		return s.upload(f)
	}
	return nil, refuse(codeUnknown, "unknown cmd %q", f.Command)
}

// subscribe makes a connection that of the bot. The one before is closed.
func (s *Server) subscribe(e *session, f *frame) *refusal {
	var v struct {
		BotID  string `json:"bot_id"`
		Secret string `json:"secret"`
	}
	if json.Unmarshal(f.Body, &v) != nil || v.BotID != s.opt.BotID || v.Secret != s.opt.Secret {
		return refuse(codeCredential, "invalid credential")
	}
	if old := s.current; old != nil && old != e {
		event := frame{Command: "aibot_event_callback", Body: s.event("disconnected_event")}
		event.Headers.ID = s.id("event")
		time.AfterFunc(0, func() { // without the lock
			old.write(event)
			_ = old.conn.CloseNow() // the bot may have closed it
		})
	}
	s.current = e
	return nil
}

// event returns the body of an event that belongs to no person.
func (s *Server) event(kind string) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{ // maps of strings
		"msgid": s.id("msg"), "aibotid": s.opt.BotID, "create_time": time.Now().Unix(), "msgtype": "event",
		"event": map[string]string{"eventtype": kind},
	})
	return raw
}

// forget ends a connection.
func (s *Server) forget(e *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == e {
		s.current = nil
	}
}

// write sends a frame, and returns false if the bot has gone, which it notices itself.
func (e *session) write(f frame) bool {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err) // can't happen: raw JSON and strings
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	return e.conn.Write(ctx, websocket.MessageText, raw) == nil
}

// Disconnect closes the connection of the bot.
func (s *Server) Disconnect() {
	s.mu.Lock()
	e := s.current
	s.current = nil
	s.mu.Unlock()
	if e != nil {
		_ = e.conn.CloseNow() // the bot may have closed it
	}
}

// IsConnected reports whether a bot is subscribed.
func (s *Server) IsConnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil
}

// Requests returns the frames that the server got.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Violations returns what the bot should not have done.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// id returns a new id. mu must be locked.
func (s *Server) id(prefix string) string {
	s.counter++
	return fmt.Sprint(prefix, "-", 1000+s.counter)
}
