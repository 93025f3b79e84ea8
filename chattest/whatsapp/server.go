package whatsapp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// The routes of the API, for [Fault] and [Request].
const (
	RouteNumber   = "number"   // GET of the phone number
	RouteMessages = "messages" // POST of a message
	RouteRead     = "read"     // POST of a read receipt with a typing indicator
	RouteUpload   = "upload"   // POST of a file
	RouteMedia    = "media"    // GET of the address of a file
	RouteDownload = "download" // GET of a file
)

const (
	// maxText is the limit of a text. The platform speaks of characters; the fake counts UTF-16 code units, the strictest count.
	maxText = 4096
	// window is how long after a person's last message a bot may write to them.
	window = 24 * time.Hour
	// typingLife is how long a typing indicator is shown.
	typingLife = 25 * time.Second
	// retryGap is the least time after a refusal because of the pair rate.
	retryGap = 5 * time.Second
)

// Options configure a [Server].
type Options struct {
	Token  string // access token
	Number string // id of the phone number
	// AppSecret signs the requests to the webhook, and VerifyToken is sent when it is subscribed.
	AppSecret, VerifyToken string
	// Phone is the number as people see it. If it is empty, it is +1 555 010 0000.
	Phone string
	// PairGap is the least time between two messages to one person; a faster one is refused with the code 131056. Rate is how many
	// messages a second the number may send; more are refused with the code 130429. If they are 0, there is no limit.
	PairGap time.Duration
	Rate    int
	// Chaos, if set, is asked for a fault for each request. It is called by one goroutine at a time, and returns nil for a request
	// that works.
	Chaos func(route, chat string) *Fault
}

// Server is the fake. Make it with New.
type Server struct {
	opt Options

	mu         sync.Mutex // protects the fields below
	people     map[string]*chat
	received   map[string]*Message // messages of people by their ids
	files      map[string]*File    // by the ids of media
	faults     []*Fault
	requests   []Request
	violations []string
	second     time.Time // the second in which inSecond messages were sent
	inSecond   int
	counter    int // of ids
	webhook    webhook
}

// Request is a request that the server got. Status is 0 if it was not answered.
type Request struct {
	At     time.Time
	Route  string
	Chat   string
	Body   map[string]any // of JSON
	Status int
}

// chat is what the server knows of a person.
type chat struct {
	messages []*Message
	lastSaid time.Time // the person's last message
	next     time.Time // no message before, without a refusal
	typing   time.Time // end of the typing indicator
	inFlight int
	penalty  time.Time // end of the time in which a message violates the rules
	limited  time.Time // no message before, by order of a fault
}

// Message is a message of the bot or of a person.
type Message struct {
	ID      string
	Bot     bool   // written by the bot
	Type    string // text, image, document...
	Text    string // or the caption
	File    *File
	ReplyTo string
	IsRead  bool // the bot has sent a read receipt
	At      time.Time
}

// File is a file in a message.
type File struct {
	Name    string
	Type    string // media type
	Content []byte
}

// New returns a server. A chat exists once a person has written.
func New(o Options) *Server {
	o.Phone = cmp.Or(o.Phone, "+1 555 010 0000")
	return &Server{opt: o, people: map[string]*chat{}, received: map[string]*Message{}, files: map[string]*File{}}
}

// call is one request.
type call struct {
	s      *Server
	r      *http.Request
	route  string
	object string // id in the path
	body   map[string]any
	chat   string // recipient
	person *chat  // of a message, if it is known
	at     time.Time
	status int
}

// failure is an answer that refuses a request.
type failure struct {
	status, code, subcode int
	message, details      string
}

// invalid refuses a parameter.
func invalid(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: 100, message: "(#100) " + fmt.Sprintf(format, args...)}
}

// unknownObject is the answer for an id that doesn't exist or isn't visible to the token.
func unknownObject(method, id string) *failure {
	return &failure{status: http.StatusBadRequest, code: 100, subcode: 33, message: fmt.Sprintf("Unsupported %s request. Object with ID '%s' "+
		"does not exist, cannot be loaded due to missing permissions, or does not support this operation", strings.ToLower(method), id)}
}

// version is the first element of the path.
var version = regexp.MustCompile(`^v\d+\.\d$`)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, r: r, at: time.Now()}
	run, failed := c.find()
	if failed == nil {
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
	if fault != nil && (fault.Status != 0 || fault.Limit > 0) {
		failed = fault.failure()
		if c.person != nil && fault.Limit > 0 {
			c.person.limited, c.person.penalty = c.at.Add(fault.Limit), time.Now().Add(retryGap)
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

// find returns what carries out a request, and reads its body.
func (c *call) find() (func() (any, *failure), *failure) {
	path := strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")
	if len(path) == 2 && path[0] == "download" {
		c.route, c.object = RouteDownload, path[1]
		return c.download, nil
	}
	if len(path) < 2 || !version.MatchString(path[0]) {
		return nil, &failure{status: http.StatusNotFound, code: 2500, message: "Unknown path components: " + c.r.URL.Path}
	}
	c.object = path[1]
	switch edge := strings.Join(path[2:], "/"); {
	case c.r.Method == http.MethodGet && edge == "" && c.object == c.s.opt.Number:
		c.route = RouteNumber
		return c.number, nil
	case c.r.Method == http.MethodGet && edge == "":
		c.route = RouteMedia
		return c.media, nil
	case c.object != c.s.opt.Number:
		return nil, unknownObject(c.r.Method, c.object)
	case c.r.Method == http.MethodPost && edge == "media":
		c.route = RouteUpload
		return c.upload, nil
	case c.r.Method == http.MethodPost && edge == "messages":
		if err := json.NewDecoder(c.r.Body).Decode(&c.body); err != nil {
			return nil, invalid("The body isn't JSON: %v", err)
		}
		c.route, c.chat = RouteMessages, c.text("to")
		c.chat = cmp.Or(c.chat, c.text("recipient"))
		if c.text("status") != "" {
			c.route = RouteRead
			return c.acknowledge, nil
		}
		return c.send, nil
	}
	return nil, unknownObject(c.r.Method, c.object)
}

// authorize checks the access token.
func (c *call) authorize() *failure {
	if c.r.URL.Query().Has("access_token") {
		c.s.violate("a token in an address")
	}
	if c.r.Header.Get("Authorization") != "Bearer "+c.s.opt.Token {
		return &failure{status: http.StatusUnauthorized, code: 190, message: "Invalid OAuth access token - Cannot parse access token"}
	}
	return nil
}

// number answers with the phone number itself.
func (c *call) number() (any, *failure) {
	return map[string]any{"id": c.object, "display_phone_number": c.s.opt.Phone, "verified_name": "Leat", "quality_rating": "GREEN"}, nil
}

// write writes the answer: a file, a result or the error of a refusal.
func (c *call) write(w http.ResponseWriter, result any, failed *failure) {
	c.status = http.StatusOK
	if failed != nil {
		c.status = failed.status
		content := map[string]any{"message": failed.message, "type": "OAuthException", "code": failed.code, "fbtrace_id": "A1b2C3d4E5f6G7h8"}
		if failed.subcode != 0 {
			content["error_subcode"], content["type"] = failed.subcode, "GraphMethodException"
		}
		if failed.details != "" {
			content["error_data"] = map[string]any{"messaging_product": "whatsapp", "details": failed.details}
		}
		result = map[string]any{"error": content}
	}
	if f, ok := result.(*File); ok {
		w.Header().Set("Content-Type", f.Type)
		_, _ = w.Write(f.Content) // the client has gone
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(c.status)
	_ = json.NewEncoder(w).Encode(result) // the client has gone
}

// text returns a string of the body, or "".
func (c *call) text(key string) string {
	v, _ := c.body[key].(string)
	return v
}
