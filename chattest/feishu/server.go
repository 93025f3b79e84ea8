package feishu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// The routes of the platform, for [Fault] and [Request].
const (
	RouteToken    = "token"
	RouteBot      = "bot"
	RouteSend     = "send"     // a message, also as a reply
	RouteUpdate   = "update"   // PATCH of a message with a card
	RouteDelete   = "delete"   // of a message
	RouteResource = "resource" // GET of a file in a message
	RouteUpload   = "upload"   // of an image or a file
	RouteCard     = "card"     // the creation of a card
	RouteContent  = "content"  // PUT of the text of a card's element
	RouteSettings = "settings" // PATCH of a card's settings
	RouteConvert  = "convert"  // of a message's id to that of its card
	RouteMessage  = "message"  // GET of a message
	RouteMembers  = "members"  // GET of the members of a chat
)

const (
	// maxCard and maxText limit the body of a request with a card and with a text, in bytes.
	maxCard = 30 << 10
	maxText = 150 << 10
	// cardRate is how many operations on one card a second pass.
	cardRate = 10
	// uuidLife is how long a repetition is recognised.
	uuidLife = time.Hour
)

// Options configure a [Server].
type Options struct {
	AppID, AppSecret string
	// EncryptKey signs and encrypts the events.
	EncryptKey string
	// TokenLife is how long an access token is valid. If it is 0, it is 2 hours.
	TokenLife time.Duration
	// Rate is how many messages a second one chat takes. If it is 0, there is no limit.
	Rate int
	// Chaos, if set, is asked for a fault for each request that concerns a chat. It is called by one goroutine at a time, and
	// returns nil for a request that works.
	Chaos func(route, chat string) *Fault
}

// BotID is the open id of the bot.
const BotID = "ou_bot"

// Server is the fake. Make it with New.
type Server struct {
	opt Options

	mu         sync.Mutex // protects the fields below
	tokens     map[string]time.Time
	chats      map[string]*chat
	messages   map[string]*Message
	cards      map[string]*card
	files      map[string]*File // by their keys
	uuids      map[string]delivered
	faults     []*Fault
	requests   []Request
	violations []string
	counter    int // of ids
	webhook    webhook
	// penalty is the end of the newest penalty, which is for all requests of the app.
	penaltyBegin, penalty time.Time
}

// Request is a request that the server got. Status is 0 if it was not answered.
type Request struct {
	At     time.Time
	Route  string
	Chat   string
	Body   map[string]any // of JSON
	Status int
}

// chat is a chat with the bot.
type chat struct {
	messages []*Message
	isClosed bool // the bot isn't a member any more
	people   []string
	times    []time.Time
	inFlight map[string]bool // messages and cards that a request changes
}

// Message is a message of the bot or of a person.
type Message struct {
	ID, Chat string
	Bot      bool   // written by the bot
	Type     string // text, interactive, image, file...
	// Text is what people see: the text, or the Markdown of the card.
	Text    string
	Buttons []Button
	File    *File
	ReplyTo string
	Thread  string
	Deleted bool
	// IsStreaming means that the chat's preview says that the message is being generated.
	IsStreaming bool
	At          time.Time
	card        *card
}

// Button is a button of a card. Value is what the event of a press contains.
type Button struct {
	Text  string
	Value map[string]any
}

// File is a file in a message.
type File struct {
	Name    string
	Content []byte
	IsImage bool
}

// delivered is a message that was sent with a uuid.
type delivered struct {
	message *Message
	at      time.Time
}

// New returns a server. A chat exists once a person has written in it.
func New(o Options) *Server {
	o.TokenLife = cmp.Or(o.TokenLife, 2*time.Hour)
	return &Server{
		opt: o, tokens: map[string]time.Time{}, chats: map[string]*chat{}, messages: map[string]*Message{},
		cards: map[string]*card{}, files: map[string]*File{},
		uuids: map[string]delivered{},
	}
}

// call is one request.
type call struct {
	s      *Server
	r      *http.Request
	route  string
	path   []string
	body   map[string]any
	size   int    // of the body, in bytes
	chat   string // that it concerns, or empty
	target string // the message or the card that it changes, or empty
	at     time.Time
	status int
}

// failure is an answer that refuses a request.
type failure struct {
	status, code int
	message      string
	reset        string // seconds until the end of a penalty, or empty
}

// refuse returns a refusal with one of the platform's codes.
func refuse(code int, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// The codes of refusals.
const (
	codeToken     = 99991663
	codeRate      = 99991400
	codeParameter = 230001
	codeOutside   = 230002 // the bot isn't in the chat
	codeChatRate  = 230020
	codeRecalled  = 230011
	codeTooLong   = 230025
	codeBadCard   = 230099
	codeSequence  = 300317
	codeClosed    = 300309 // the card doesn't stream
	codeNoCard    = 300303
)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, r: r, at: time.Now(), path: strings.Split(strings.Trim(r.URL.Path, "/"), "/")}
	run, failed := c.find()
	if failed == nil {
		failed = c.readBody()
	}
	if failed == nil && c.route != RouteToken {
		failed = c.authorize()
	}
	if failed != nil {
		c.write(w, nil, failed)
		return
	}
	fault := s.begin(c)
	defer s.end(c)
	if fault != nil && !memory.WaitForRelease(r.Context(), fault.Release) || fault != nil && fault.Before {
		panic(http.ErrAbortHandler)
	}
	var result any
	s.mu.Lock()
	if fault != nil && fault.Status != 0 {
		failed = fault.failure()
		if fault.RetryAfter > 0 {
			s.penaltyBegin = time.Now()
			s.penalty = s.penaltyBegin.Add(fault.RetryAfter)
		}
	} else {
		result, failed = run()
	}
	s.mu.Unlock()
	if fault != nil && fault.After {
		panic(http.ErrAbortHandler)
	}
	c.write(w, result, failed)
}

// find returns what carries out a request.
func (c *call) find() (func() (any, *failure), *failure) {
	p := make([]string, 9)
	copy(p, c.path)
	route := func(name string, run func() (any, *failure)) (func() (any, *failure), *failure) {
		c.route = name
		return run, nil
	}
	switch operation := c.r.Method + " " + strings.Join(p[1:4], "/"); {
	case operation == "POST auth/v3/tenant_access_token" && p[4] == "internal":
		return route(RouteToken, c.token)
	case operation == "GET bot/v3/info":
		return route(RouteBot, c.bot)
	case operation == "POST im/v1/images", operation == "POST im/v1/files":
		return route(RouteUpload, c.upload)
	case operation == "POST im/v1/messages" && (p[4] == "" || p[5] == "reply"):
		return route(RouteSend, c.send)
	case operation == "PATCH im/v1/messages" && p[5] == "":
		return route(RouteUpdate, c.update)
	case operation == "DELETE im/v1/messages" && p[5] == "":
		return route(RouteDelete, c.remove)
	case operation == "GET im/v1/messages" && p[5] == "":
		return route(RouteMessage, c.message)
	case operation == "GET im/v1/chats" && p[5] == "members":
		return route(RouteMembers, c.members)
	case operation == "GET im/v1/messages" && p[5] == "resources":
		return route(RouteResource, c.resource)
	case operation == "POST cardkit/v1/cards" && p[4] == "":
		return route(RouteCard, c.createCard)
	case operation == "POST cardkit/v1/cards" && p[4] == "id_convert":
		return route(RouteConvert, c.convert)
	case operation == "PUT cardkit/v1/cards" && p[5] == "elements" && p[7] == "content":
		return route(RouteContent, c.content)
	case operation == "PATCH cardkit/v1/cards" && p[5] == "settings":
		return route(RouteSettings, c.settings)
	}
	return nil, &failure{status: http.StatusNotFound, code: 404, message: "404 page not found"}
}

// readBody reads a body of JSON. Forms are read by their route.
func (c *call) readBody() *failure {
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	raw, err := io.ReadAll(c.r.Body)
	if err != nil {
		return refuse(9499, "Bad Request")
	}
	c.size = len(raw)
	if c.size > 0 && json.Unmarshal(raw, &c.body) != nil {
		return refuse(9499, "Bad Request")
	}
	return nil
}

// write writes the answer: a file, a result or the error of a refusal.
func (c *call) write(w http.ResponseWriter, result any, failed *failure) {
	c.status = http.StatusOK
	answer := map[string]any{"code": 0, "msg": "success"}
	switch v := result.(type) {
	case *File:
		if failed == nil {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(v.Content) // the client has gone
			return
		}
	case flat:
		maps.Copy(answer, v)
	default:
		answer["data"] = result
	}
	if failed != nil {
		c.status = failed.status
		answer = map[string]any{"code": failed.code, "msg": failed.message}
		if failed.reset != "" {
			w.Header().Set("X-Ogw-Ratelimit-Reset", failed.reset)
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(c.status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}

// flat is a result that stands next to the code instead of in data.
type flat map[string]any

// text returns a string of the body, or "".
func (c *call) text(key string) string {
	v, _ := c.body[key].(string)
	return v
}

// id returns a new id. mu must be locked.
func (s *Server) id(prefix string) string {
	s.counter++
	return fmt.Sprint(prefix, 1000+s.counter)
}
