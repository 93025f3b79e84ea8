package discord

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// botID is the id of the bot as a user, and applicationID that of its application. Old bots have two different ids.
	botID         = "1001"
	applicationID = "1002"
	// defaultHeartbeat is the interval of heartbeats that the gateway asks for.
	defaultHeartbeat = 41250 * time.Millisecond
)

// epoch is the time from which the ids of Discord count milliseconds.
var epoch = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// Options configure a [Server].
type Options struct {
	// Token is compared without the prefix of the header.
	Token    string // of the bot
	Username string // of the bot; if it is empty, leat
	// NoMessageContent means that the application may not use the privileged intent for the content of messages.
	NoMessageContent bool
	// Heartbeat is the interval that the gateway asks for. If it is 0, it is 41.25 s.
	Heartbeat time.Duration
	// NoLimits switches off the limits of buckets and the global one, but not the penalties of faults.
	NoLimits bool
	// Chaos, if set, is asked for a fault for each request. It is called by one goroutine at a time, and returns nil for a request
	// that works. The route has the form of [Fault.Route].
	Chaos func(route, channel string) *Fault
}

// Server is the fake. Make it with New.
type Server struct {
	opt Options
	mux *http.ServeMux

	mu sync.Mutex // protects the fields below
	// changed is closed and replaced at each change.
	changed chan struct{}
	base    string // the address that the bot uses
	// lastID is the newest id; the next one is larger, also within the same millisecond.
	lastID uint64
	// channels are all channels, direct chats and threads by their ids.
	channels     map[string]*room
	commands     []Command
	creations    bucket                  // of commands
	interactions map[string]*interaction // by id
	sessions     map[string]*session
	sockets      map[*socket]bool
	identified   time.Time // of the last session
	starts       int       // sessions that were started
	// isMuted means that frames to the bot get lost.
	isMuted bool
	// buckets count the requests of a route in a channel.
	buckets    map[string]*bucket
	global     bucket
	inFlight   map[string]bool // requests for a message, by its id
	faults     []*Fault
	requests   []Request
	violations []string
	files      map[string]File // by the path of their address
}

// Request is a request that the server got. Status is 0 if it was not answered.
type Request struct {
	At time.Time
	// Route has the form of [Fault.Route].
	Route string
	// Channel is the id in the path, or empty.
	Channel string
	Body    map[string]any // its JSON
	Status  int
}

// room is a channel, a direct chat or a thread.
type room struct {
	// The guild is empty for direct chats, and the parent for all but threads.
	id, guild, parent string
	kind              int
	name              string
	// messages are in the order of their ids.
	messages []*Message
	refusal  int       // code with which all requests are refused, or 0
	penalty  time.Time // end of a penalty for writing, code 20028
	typing   time.Time
}

// Kinds of channels.
const (
	kindText   = 0
	kindDirect = 1
	kindThread = 11
)

// New returns a server without channels. A channel exists once a person has written in it.
func New(o Options) *Server {
	o.Username = cmp.Or(o.Username, "leat")
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	s := &Server{
		opt: o, changed: make(chan struct{}), channels: map[string]*room{}, interactions: map[string]*interaction{}, sessions: map[string]*session{},
		sockets: map[*socket]bool{}, buckets: map[string]*bucket{}, inFlight: map[string]bool{}, files: map[string]File{},
	}
	s.mux = s.routes()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.base = "http://" + r.Host
	s.mu.Unlock()
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		s.connect(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/attachments/") {
		s.download(w, r)
		return
	}
	version, path, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	if !ok || version != "v9" && version != "v10" { // 9 has the same rules and is used by clients in the tests
		write(w, nil, refuse(http.StatusNotFound, 0, "404: Not Found"))
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+path, ""
	s.mux.ServeHTTP(w, inner)
}

// nextID returns a new id. It contains the time if that is after the epoch of Discord. mu must be locked.
func (s *Server) nextID() string {
	id := s.lastID + 1
	if at := time.Since(epoch).Milliseconds(); at > 0 {
		id = max(id, uint64(at)<<22)
	}
	s.lastID = id
	return strconv.FormatUint(id, 10)
}

// wake wakes those who wait for a change. mu must be locked.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// violate records what the bot should not have done. mu must be locked.
func (s *Server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}
