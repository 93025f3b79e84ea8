package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

const (
	// maxText is the limit of a text, in UTF-16 code units.
	maxText = 4096
	// draftLife is how long a draft is shown after its last update.
	draftLife = 30 * time.Second
)

// Options configure a [Server].
type Options struct {
	// Token is a part of every address, so a request with another one is refused.
	Token    string // of the bot
	Username string // of the bot; if it is empty, leat_bot
	// NoDrafts makes the server an older one, which doesn't know drafts.
	NoDrafts bool
	// NoRichDrafts makes it a server between Bot API 9.5 and 10.0, which knows plain drafts only.
	NoRichDrafts bool
	// Gap and GroupGap are the least times between two messages or edits in a private chat and in a group. A faster request is
	// refused with 429. If they are 0, requests may be as fast as they like.
	Gap, GroupGap time.Duration
	// Chaos, if set, is asked for a fault for each request apart from polls. It is called by one goroutine at a time, and returns
	// nil for a request that works.
	Chaos func(method string, chat int64) *Fault
}

// Server is the fake. Make it with New.
type Server struct {
	opt Options

	// A handler that waits for a change or for a fault doesn't hold it.
	mu sync.Mutex // protects the fields below
	// changed is closed and replaced at each change.
	changed chan struct{}
	updates []update // not confirmed yet
	// nextUpdate is the id of the next update. The ids begin high, so that a bot can't count from 1.
	nextUpdate int64
	nextID     int64 // of messages in private chats
	chats      map[int64]*chat
	faults     []*Fault
	requests   []Request
	violations []string
	// polling is set during a poll; a second one is refused.
	polling bool
	webhook webhook
	menu    []Command
	files   []File // that getFile gives, by their number
}

// Request is a request that the server got. Status is 0 if it was not answered. Chat is 0 for methods that concern no chat.
type Request struct {
	At     time.Time
	Method string
	Chat   int64
	// Params are those of the query and the body, in the form in which the client wrote them.
	Params map[string]any
	Status int
}

// chat is a private chat or a supergroup.
type chat struct {
	messages []*Message
	byID     map[int64]*Message
	drafts   map[int64]*draft // by topic
	blocked  bool             // by the person
	noVoice  bool             // the person forbids voice notes
	deleted  bool             // the chat doesn't exist any more
	// migrated is the id of the supergroup that the group became, or 0.
	migrated int64
	next     time.Time // no message before, without a 429
	penalty  time.Time // end of the last 429
	// inFlight has the numbers of messages with a request that has not ended.
	inFlight map[int64]bool
}

// draft is an animated text at the end of a topic, which isn't a message.
type draft struct {
	id       int64
	text     string
	entities []Entity
	at       time.Time
}

// Message is a message of the bot or of a person.
type Message struct {
	ID   int64
	Chat int64
	// Thread is the topic, or 0.
	Thread int64
	Bot    bool // written by the bot
	Text   string
	// Entities are those of the request, or those of its HTML.
	Entities []Entity
	Buttons  []Button
	Files    []File
	// ReplyTo is the number of the message that this one answers, or 0.
	ReplyTo  int64
	Silent   bool   // without a notification
	Reaction string // of the bot, or empty
	Deleted  bool
	// Versions are all texts that it had, the first included.
	Versions []string
	At       time.Time
}

// File is a file in a message. IsPhoto is set if it is shown as a picture.
type File struct {
	Name    string
	Type    string // media type
	Content []byte
	IsPhoto bool
	IsVoice bool // a voice note, in Ogg Opus
}

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// Entity is a formatted range of a text. Offset and Length are in UTF-16 code units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// New returns a server without chats. A chat exists once a person has written in it.
func New(o Options) *Server {
	o.Username = cmp.Or(o.Username, "leat_bot")
	return &Server{opt: o, changed: make(chan struct{}), chats: map[int64]*chat{}, nextUpdate: 1000, nextID: 1}
}

// failure is an answer that refuses a request.
type failure struct {
	// The status is also the error_code of the body.
	status      int
	description string
	parameters  map[string]any
}

// refuse returns a refusal with a status and a description.
func refuse(status int, format string, args ...any) *failure {
	return &failure{status: status, description: fmt.Sprintf(format, args...)}
}

// badRequest returns a refusal with status 400. The real API begins the description of each with these words.
func badRequest(format string, args ...any) *failure {
	return refuse(http.StatusBadRequest, "Bad Request: "+format, args...)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Files have another path than methods, and their requests meet no faults.
	if name, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+s.opt.Token+"/"); ok {
		s.download(w, name)
		return
	}
	token, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	if !ok || token != s.opt.Token || !strings.HasPrefix(r.URL.Path, "/bot") {
		write(w, nil, refuse(http.StatusUnauthorized, "Unauthorized"))
		return
	}
	params, err := parse(r)
	if err != nil {
		write(w, nil, badRequest("can't parse the body: %v", err))
		return
	}
	if method == "getUpdates" {
		s.poll(w, r, params)
		return
	}
	call := &call{s: s, method: method, params: params, form: r.MultipartForm, at: time.Now()}
	fault := s.begin(call)
	defer s.end(call)
	if fault != nil && !memory.WaitForRelease(r.Context(), fault.Release) {
		panic(http.ErrAbortHandler)
	}
	if fault != nil && fault.Before {
		panic(http.ErrAbortHandler)
	}
	var result any
	var failed *failure
	if fault != nil && fault.Status != 0 {
		failed = fault.failure()
		s.punish(call, fault)
	} else {
		result, failed = call.run()
	}
	if fault != nil && fault.After {
		panic(http.ErrAbortHandler)
	}
	call.status = write(w, result, failed)
}

// write writes the answer and returns its status.
func write(w http.ResponseWriter, result any, failed *failure) int {
	answer := map[string]any{"ok": failed == nil}
	status := http.StatusOK
	if failed != nil {
		status = failed.status
		answer["error_code"], answer["description"] = failed.status, failed.description
		if failed.parameters != nil {
			answer["parameters"] = failed.parameters
		}
	} else {
		answer["result"] = result
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
	return status
}

// wake wakes those who wait for a change. mu must be locked.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// chat returns a chat, which is made if it doesn't exist. mu must be locked.
func (s *Server) chat(id int64) *chat {
	c := s.chats[id]
	if c == nil {
		c = &chat{byID: map[int64]*Message{}, drafts: map[int64]*draft{}, inFlight: map[int64]bool{}}
		s.chats[id] = c
	}
	return c
}
