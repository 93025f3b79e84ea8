package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The key and the model that a server accepts.
const (
	// Requests with another key are refused as the real API refuses them, and requests for another model as
	// unknown.
	Key   = "sk-test-0123456789"
	Model = "m-1"
)

// Server is a provider. All methods are safe for concurrent use. They may be called before and during a call of
// the agent; a change of the pieces affects only answers that begin later.
type Server struct {
	// URL is the value for the option base_url.
	URL string

	kind string
	api  api
	http *httptest.Server

	mu sync.Mutex
	// State of the server, guarded by mu. pieces is the answer, faults are those of the next calls, and
	// responses are the background responses by id.
	pieces       []string
	answers      []Answer // of the next calls, before pieces
	faults       []Fault
	calls        []call
	responses    map[string]*response
	eventLimit   int           // number of events that a background response may send; negative: all
	limitChanged chan struct{} // closed and replaced when eventLimit changes
	cancelled    []string
}

// call is a received request. Body is nil if the request has no body or one that isn't a JSON object. The
// header includes the key, so a test can check where a key is sent.
type call struct {
	Method, Path string
	Header       http.Header
	Body         map[string]any
	Status       int // status of the response
}

// refusal is an error response, before it is encoded in the provider's format. kind is the provider's type or
// code of the error, from which a client classifies it.
type refusal struct {
	status  int
	kind    string
	message string
}

// api describes what is specific to one provider's API. It is written from the API's documentation and from
// recordings, and must not share code with package llm.
type api struct {
	// base is the path that the option base_url has after the host, such as /v1, or empty.
	base string // path of base_url
	// key returns the key in a request, or "" if it is missing or another required header is wrong. It is nil
	// if the API needs no key.
	key func(r *http.Request) string
	// missing is the refusal of a request without the right key.
	missing refusal
	// route returns the action of a request: "stream", "model", "follow", "cancel", or "" for an unknown path. If the path has
	// the model, it is returned too.
	route func(r *http.Request) (action, model string)
	// check returns a refusal for a body that the real API would refuse, or nil.
	check func(raw []byte) *refusal
	// frames returns the frames of an answer with the given pieces. frames[end:] are the ones that mark the answer as complete.
	frames func(pieces []string) (frames []string, end int)
	// beats are keep-alives, each complete with its line ends. They aren't progress: a turn that gets only
	// beats must fail for its silence.
	beats []string
	// failure returns the frame of an error inside a stream, fail the body of an error response.
	failure func(kind, message string) string
	fail    func(refusal) string
	// modelReply is the response to a request for the model, or the list of models if the API has no such
	// request.
	modelReply string
	media      string // content type of a stream
}

// New starts a server of a kind: anthropic, openai, responses, gemini or ollama. It ends with the test. It
// listens on a port of the loopback interface, so it can't be used in a bubble of testing/synctest; see
// [NewPiped] for that.
func New(t testing.TB, kind string) *Server {
	t.Helper()
	s := newServer(t, kind)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.http.Close)
	s.URL = s.http.URL + s.api.base
	return s
}

// newServer returns a server that doesn't listen yet. Its answer is a short text with characters outside ASCII,
// which a decoder that splits characters would damage.
func newServer(t testing.TB, kind string) *Server {
	t.Helper()
	p, ok := apis[kind]
	if !ok {
		t.Fatalf("no provider %q", kind)
	}
	return &Server{kind: kind, api: p, pieces: []string{"Hello ", "wörld ", "\U0001F44B."}, responses: map[string]*response{}, eventLimit: -1, limitChanged: make(chan struct{})}
}

// Say sets the pieces of the next answers. Each piece is a separate frame, so a live reader may see the answer
// grow piece by piece.
func (s *Server) Say(pieces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = pieces
}

// Fail appends faults, one for each of the next calls, in the order in which the calls arrive. Requests for a
// model don't use them up, and neither do requests that the server refuses. Calls after the last fault succeed.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Calls returns the received requests, in order, including those that were refused.
func (s *Server) Calls() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Text returns the text of the answer, which readers must see in the end.
func (s *Server) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.pieces, "")
}

// serve handles a request. It records the request before it is answered, so that Calls includes it even if the
// answer never ends.
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

// admit checks a request. It returns the action (a stream, a model, follow or cancel) and the fault of the
// call, or the refusal.
//
// The checks are in the order of the real APIs: the key, the path, the content type, the body and the model. So
// a request with a wrong key and a wrong body gets the error for the key.
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
	model = cmp.Or(model, body.Model)
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

// refuse sends an error response in the provider's format. h has additional headers, such as Retry-After, and
// may be nil. The body isn't a stream, also for a request that asked for one: the real APIs stream only after
// they have accepted a request.
func (s *Server) refuse(w http.ResponseWriter, r refusal, h http.Header) {
	w.Header().Set("Content-Type", "application/json")
	maps.Copy(w.Header(), h)
	w.WriteHeader(r.status)
	fmt.Fprint(w, s.api.fail(r))
}
