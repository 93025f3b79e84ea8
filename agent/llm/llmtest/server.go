package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What a server expects.
const (
	Key   = "sk-test-0123456789"
	Model = "m-1"
)

// Server is one provider.
type Server struct {
	// URL is what base_url has to be.
	URL string

	api  api
	http *httptest.Server

	mu           sync.Mutex
	pieces       []string
	faults       []Fault
	calls        []call
	responses    map[string]*response
	eventLimit   int           // events of responses that may be told; below 0: all
	limitChanged chan struct{} // closed and replaced when told changes
	cancelled    []string
}

// Call is a request that came.
type call struct {
	Method, Path string
	Header       http.Header
	Body         map[string]any
	Status       int // of the answer
}

// refusal is an answer that is no success, in the words of its provider.
type refusal struct {
	status  int
	kind    string
	message string
}

// api is what a provider's API has of its own.
type api struct {
	base string // what base_url has after the address
	// key is what the request carries as the key.
	key func(r *http.Request) string
	// missing is how a request without the right key is refused.
	missing refusal
	// route says what a request asks for: a stream, a model, or (empty) nothing that is there.
	route func(r *http.Request) (action, model string)
	// check refuses a body.
	check func(raw []byte) *refusal
	// frames are those of an answer; the last ones that say it is whole begin at end.
	frames func(pieces []string) (frames []string, end int)
	// beats are what keeps a connection open and is no progress.
	beats []string
	// failure is an error inside a stream, fail the body of an error.
	failure func(kind, message string) string
	fail    func(refusal) string
	// found is what it tells of a model.
	modelReply string
	media      string
}

// New starts a server of a kind: anthropic, openai, responses, gemini or ollama. It ends with the test.
func New(t testing.TB, kind string) *Server {
	t.Helper()
	s := newServer(t, kind)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.http.Close)
	s.URL = s.http.URL + s.api.base
	return s
}

func newServer(t testing.TB, kind string) *Server {
	t.Helper()
	p, ok := apis[kind]
	if !ok {
		t.Fatalf("no provider %q", kind)
	}
	return &Server{api: p, pieces: []string{"Hello ", "wörld ", "\U0001F44B."}, responses: map[string]*response{}, eventLimit: -1, limitChanged: make(chan struct{})}
}

// Say sets what is answered from now on.
func (s *Server) Say(pieces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = pieces
}

// Fail makes the next calls fail, one fault each.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Calls are the requests that came.
func (s *Server) Calls() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.calls...)
}

// Text is what is answered.
func (s *Server) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.pieces, "")
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c := call{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Status: http.StatusOK}
	if len(raw) > 0 && json.Unmarshal(raw, &c.Body) != nil {
		c.Body = nil
	}
	action, f, no := s.admit(r, raw)
	if no != nil {
		c.Status = no.status
	}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	switch {
	case no != nil:
		s.refuse(w, *no, nil)
	case action == "model":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, s.api.modelReply)
	case action == "follow", action == "cancel":
		s.follow(w, r, action)
	case f.Kind == Status:
		s.refuse(w, refusal{f.Status, f.Says, f.Message}, f.Header)
	default:
		s.stream(w, r, raw, f)
	}
}

// admit says what a request asks for, with the fault that it meets, or refuses it.
func (s *Server) admit(r *http.Request, raw []byte) (string, Fault, *refusal) {
	if s.api.key != nil && s.api.key(r) != Key {
		return "", Fault{}, &s.api.missing
	}
	action, model := s.api.route(r)
	switch action {
	case "":
		return "", Fault{}, &refusal{http.StatusNotFound, "not_found_error", "no such route: " + r.Method + " " + r.URL.Path}
	case "model", "follow", "cancel":
		if model != "" && model != Model {
			return "", Fault{}, &refusal{http.StatusNotFound, "not_found_error", "model: " + model}
		}
		return action, Fault{}, nil
	}
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		return "", Fault{}, &refusal{http.StatusUnsupportedMediaType, "invalid_request_error", "content type " + ct}
	}
	if no := s.api.check(raw); no != nil {
		return "", Fault{}, no
	}
	var body struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return "", Fault{}, &refusal{http.StatusBadRequest, "invalid_request_error", err.Error()}
	}
	if model == "" {
		model = body.Model
	}
	if model != Model {
		return "", Fault{}, &refusal{http.StatusNotFound, "not_found_error", "model: " + model}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var f Fault
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return action, f, nil
}

func (s *Server) refuse(w http.ResponseWriter, r refusal, h http.Header) {
	w.Header().Set("Content-Type", "application/json")
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(r.status)
	fmt.Fprint(w, s.api.fail(r))
}
