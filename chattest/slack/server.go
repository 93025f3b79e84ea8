package slack

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a [Server].
type Options struct {
	Token         string // of the bot; it begins with xoxb-
	AppToken      string // of the app, for Socket Mode; it begins with xapp-
	SigningSecret string // of the app, for the Events API
	// BotUser is the id of the bot as a user. If it is empty, it is UBOT.
	BotUser string
	// NoStreams refuses native streams, as channels do that don't support them.
	NoStreams bool
	// NoHistory refuses to show the messages of channels, because the token lacks the scopes.
	NoHistory bool
	// Gap is the least time between two messages in a channel. A faster one is refused with 429. If it is 0, messages may be as
	// fast as the bot likes.
	Gap time.Duration
	// Tiers enforces the limits of the methods in a minute.
	Tiers bool
	// Chaos, if set, is asked for a fault for each request of the Web API. It is called by one goroutine at a time, and returns
	// nil for a request that works.
	Chaos func(method, channel string) *Fault
}

// team is the id of the workspace.
const team = "T1"

// Server is the fake. Make it with New.
type Server struct {
	opt Options

	mu sync.Mutex // protects the fields below
	// changed is closed and replaced at each change.
	changed chan struct{}
	// channels are all channels and direct messages by their ids.
	channels map[string]*conversation
	users    map[string]string // names by id
	files    []*upload
	// faults are those that have not happened, in the order in which they were added.
	faults      []*Fault
	requests    []Request
	violations  []string
	recent      map[string][]time.Time // requests of a method in the last minute
	envelopes   []*envelope            // not acknowledged
	tickets     map[string]bool        // of connections that may be opened
	connections map[*connection]bool
	numbers     int // of events, envelopes, tickets and presses
}

// Request is a request that the server got. Status is 0 if it was not answered. Error is that of its answer.
type Request struct {
	At     time.Time
	Method string
	// Channel is empty for a method that concerns none.
	Channel string
	// Params are those of the request without its token.
	Params map[string]any
	Status int
	Error  string
}

// conversation is a channel or the direct messages with a person.
type conversation struct {
	messages []*Message
	// byTS has the messages by their ids, the deleted ones as well.
	byTS     map[string]*Message
	last     time.Time // of the newest message; ids ascend
	absent   bool      // the bot is not a member
	archived bool
	status   map[string]status // by thread
	next     time.Time         // no message before, without a 429
	// penalty has the end of the last 429 by method.
	penalty map[string]time.Time
	// inFlight has the messages with a request that has not ended.
	inFlight map[string]bool
}

// status is a line such as "is thinking...".
type status struct {
	text string
	at   time.Time
}

// Message is a message of the bot or of a person.
type Message struct {
	Channel string
	TS      string // its id, unique in the channel
	Thread  string // the id of the first message of its thread, or empty
	User    string
	Bot     bool   // written by the bot
	Text    string // mrkdwn, or Markdown if IsMarkdown is set
	// IsMarkdown is set for streams and for messages that were sent as markdown_text.
	IsMarkdown bool
	Buttons    []Button
	Plan       string // the title of the tasks, or empty
	Tasks      []Task
	// Files are shown by the message itself. It has text only if the person or the bot added some.
	Files    []File
	Metadata *Metadata
	// Streaming is set while a stream can be appended to.
	Streaming bool
	// Unfurls is set if links in the message get previews.
	Unfurls bool
	Deleted bool
	// Versions are all texts that it had, the first included.
	Versions []string
	// At is when it was created, as its id says.
	At time.Time

	isStopped bool // by a person
	// mode is the form in which a stream gets its content, once that is known.
	mode string
}

// Button is a button of a message.
type Button struct {
	// Value and Action come back when the button is pressed. Block is the id of its block.
	Text, Value, Action, Block string
}

// Task is a task of a stream, as its newest update shows it.
type Task struct {
	// ID is chosen by the bot. An update with the same one replaces the task.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Status is pending, in_progress, complete or error.
	Status  string `json:"status"`
	Details string `json:"details"`
	Output  string `json:"output"`
}

// Metadata is what an app attaches to a message for itself.
type Metadata struct {
	// Type is chosen by the app, so that it recognizes its own metadata.
	Type    string         `json:"event_type"`
	Payload map[string]any `json:"event_payload"`
}

// File is a file in a message.
type File struct {
	Name    string
	Type    string // media type
	Content []byte
}

// New returns a server without channels. A channel exists once a person has written in it.
func New(o Options) *Server {
	o.BotUser = cmp.Or(o.BotUser, "UBOT")
	return &Server{
		opt: o, changed: make(chan struct{}), channels: map[string]*conversation{}, users: map[string]string{o.BotUser: "leat"},
		recent: map[string][]time.Time{}, tickets: map[string]bool{}, connections: map[*connection]bool{},
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/api/"):
		s.api(w, r, strings.TrimPrefix(path, "/api/"))
	case strings.HasPrefix(path, "/link/"):
		s.link(w, r)
	case strings.HasPrefix(path, uploadPath):
		s.upload(w, r, strings.TrimPrefix(path, uploadPath))
	case strings.HasPrefix(path, downloadPath):
		s.download(w, r, strings.TrimPrefix(path, downloadPath))
	default:
		http.NotFound(w, r)
	}
}

// address returns an address of the server itself, as the client has called it.
func address(r *http.Request, scheme, path string) string {
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme += "s"
	}
	return scheme + "://" + r.Host + path
}

// number returns a new number. mu must be locked.
func (s *Server) number() int {
	s.numbers++
	return s.numbers
}

// violate records what the bot should not have done. mu must be locked.
func (s *Server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// wake wakes those who wait for a change. mu must be locked.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// conversation returns a channel, which is made if it doesn't exist. mu must be locked.
func (s *Server) conversation(id string) *conversation {
	c := s.channels[id]
	if c == nil {
		c = &conversation{byTS: map[string]*Message{}, status: map[string]status{}, penalty: map[string]time.Time{}, inFlight: map[string]bool{}}
		s.channels[id] = c
	}
	return c
}

// add adds a message to its channel. mu must be locked.
func (s *Server) add(m *Message) *Message {
	c := s.conversation(m.Channel)
	m.At, m.Versions = time.Now(), []string{m.Text}
	at := m.At.Truncate(time.Microsecond)
	// In a bubble of virtual time many messages have the same time, and ids must be unique.
	if !at.After(c.last) {
		at = c.last.Add(time.Microsecond)
	}
	c.last = at
	m.TS = fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/int(time.Microsecond))
	c.messages = append(c.messages, m)
	c.byTS[m.TS] = m
	// The status line makes room for the message.
	if m.Bot {
		delete(c.status, m.Thread)
	}
	return m
}

// isDirect reports whether a channel is the direct messages with one person.
func isDirect(channel string) bool { return strings.HasPrefix(channel, "D") }
