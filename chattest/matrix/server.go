package matrix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Options configure a [Server].
type Options struct {
	User     string // id of the bot; if it is empty, @leat:matrix.test
	Name     string // displayname of the bot, which may be empty
	Token    string // access token of the bot
	Password string // of the bot, for logins
	// IsSynapse makes the refusal of a large event that of Synapse. Otherwise it is that of Dendrite.
	IsSynapse bool
	// Rate is how many events and redactions a second the bot may send, and Burst how many at once. If Rate is 0, there is no limit.
	// Synapse's default is 0.2 with a burst of 10.
	Rate  float64
	Burst int
	// MaxUpload limits an uploaded file, in bytes. If it is 0, it is 50 MiB, the default of Synapse.
	MaxUpload int
	// Chaos, if set, is asked for a fault for each request apart from syncs. It is called by one goroutine at a time, and returns nil
	// for a request that works.
	Chaos func(route, room string) *Fault
}

// Server is the fake. Make it with New.
type Server struct {
	opt Options
	mux *http.ServeMux

	mu sync.Mutex // protects the fields below
	// changed is closed and replaced at each change.
	changed  chan struct{}
	position int64             // of the newest event or change of account data
	devices  map[string]string // by access token
	rooms    map[string]*room
	files    map[string]*File // by mxc address
	// filters are those that were uploaded. The number of one is its id.
	filters      []json.RawMessage
	accountData  map[string]datum
	transactions map[string]string // events that repeated requests find, by device, method and path
	level        float64           // of the token bucket
	filledAt     time.Time
	penalties    map[string]penalty // the last 429s, by kind of request
	inFlight     map[string]bool    // messages with a request
	faults       []*Fault
	requests     []Request
	violations   []string
	typing       map[string]time.Time // until when the bot types, by room
	receipts     map[string]string    // newest read event, by room
	ids          map[string]int       // how many ids were made, by their prefix
}

// Request is a request that the server got. Status is 0 if it was not answered.
type Request struct {
	At time.Time
	// Path has the ids of the request, and no query.
	Path string
	// Route is the kind of the request, such as send or redact.
	Route string
	Room  string
	// Content is the JSON body, or nil.
	Content map[string]any
	Status  int
}

// datum is the content of an event of account data.
type datum struct {
	// The position is that of the newest change, so that a sync sends it once.
	content  json.RawMessage
	position int64
}

// New returns a server without rooms.
func New(o Options) *Server {
	o.User = cmp.Or(o.User, "@leat:matrix.test")
	o.MaxUpload = cmp.Or(o.MaxUpload, 50<<20)
	s := &Server{
		opt: o, mux: http.NewServeMux(), changed: make(chan struct{}), devices: map[string]string{o.Token: "DEVICE"}, rooms: map[string]*room{},
		files: map[string]*File{}, accountData: map[string]datum{}, transactions: map[string]string{}, level: float64(o.Burst), filledAt: time.Now(),
		penalties: map[string]penalty{}, inFlight: map[string]bool{}, typing: map[string]time.Time{}, receipts: map[string]string{}, ids: map[string]int{},
	}
	for _, rt := range routes() {
		s.mux.HandleFunc(rt.pattern, s.handler(rt))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, nil, refuse(http.StatusNotFound, "M_UNRECOGNIZED", "Unrecognized request"))
	})
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// route is a kind of requests.
type route struct {
	// name is the kind of the request, which several patterns can share.
	name    string
	pattern string
	isOpen  bool // needs no access token
	// run is called with mu locked. It is nil for a sync, which waits without the lock.
	run func(*call) (any, *failure)
}

// routes returns the routes of the API that the server has.
func routes() []route {
	const (
		client = "/_matrix/client/"
		v3     = client + "v3/"
		room   = v3 + "rooms/{room}/"
	)
	return []route{
		{"versions", "GET " + client + "versions", true, (*call).versions},
		{"login", "GET " + v3 + "login", true, (*call).flows},
		{"login", "POST " + v3 + "login", true, (*call).login},
		{"whoami", "GET " + v3 + "account/whoami", false, (*call).whoami},
		{"profile", "GET " + v3 + "profile/{user}", false, (*call).profile},
		{"profile", "GET " + v3 + "profile/{user}/displayname", false, (*call).profile},
		{"filter", "POST " + v3 + "user/{user}/filter", false, (*call).addFilter},
		{"account", "GET " + v3 + "user/{user}/account_data/{type}", false, (*call).getAccountData},
		{"account", "PUT " + v3 + "user/{user}/account_data/{type}", false, (*call).putAccountData},
		{"sync", "GET " + v3 + "sync", false, nil},
		{"join", "POST " + v3 + "join/{room}", false, (*call).join},
		{"join", "POST " + room + "join", false, (*call).join},
		{"leave", "POST " + room + "leave", false, (*call).leave},
		{"send", "PUT " + room + "send/{type}/{txn}", false, (*call).send},
		{"redact", "PUT " + room + "redact/{event}/{txn}", false, (*call).redact},
		{"typing", "PUT " + room + "typing/{user}", false, (*call).setTyping},
		{"receipt", "POST " + room + "receipt/{type}/{event}", false, (*call).receipt},
		{"receipt", "POST " + room + "read_markers", false, (*call).readMarkers},
		{"members", "GET " + room + "joined_members", false, (*call).joinedMembers},
		{"members", "GET " + room + "members", false, (*call).members},
		{"state", "GET " + room + "state", false, (*call).fullState},
		{"state", "GET " + room + "state/{type}", false, (*call).oneState},
		{"state", "GET " + room + "state/{type}/{key}", false, (*call).oneState},
		{"event", "GET " + room + "event/{event}", false, (*call).oneEvent},
		{"messages", "GET " + room + "messages", false, (*call).messages},
		{"relations", "GET " + client + "v1/rooms/{room}/relations/{event}", false, (*call).relations},
		{"relations", "GET " + client + "v1/rooms/{room}/relations/{event}/{relation}", false, (*call).relations},
		{"relations", "GET " + client + "v1/rooms/{room}/relations/{event}/{relation}/{type}", false, (*call).relations},
		{"upload", "POST /_matrix/media/v3/upload", false, (*call).upload},
		{"download", "GET " + client + "v1/media/download/{server}/{media}", false, (*call).download},
		{"download", "GET " + client + "v1/media/download/{server}/{media}/{name}", false, (*call).download},
		{"config", "GET " + client + "v1/media/config", false, (*call).mediaConfig},
	}
}

// wake wakes those who wait for a change. mu must be locked.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// next returns the next position in the stream of changes. mu must be locked.
func (s *Server) next() int64 {
	s.position++
	return s.position
}

// newID returns an id that no other thing has. Bots must not read anything out of it. mu must be locked.
func (s *Server) newID(prefix string) string {
	s.ids[prefix]++
	return fmt.Sprint(prefix, s.ids[prefix])
}
