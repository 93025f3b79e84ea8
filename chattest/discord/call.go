package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// call is one request of the HTTP API.
type call struct {
	s *Server
	r *http.Request
	// route is the method and the path with placeholders.
	route string
	body  map[string]any // of a JSON object
	// raw is the JSON as it arrived, from which components are decoded with their types.
	raw  json.RawMessage
	form *multipart.Form // of a request with files, or nil
	// at is when the request arrived, before a fault delays it.
	at      time.Time
	status  int
	channel *room // of the path, or nil
	// limits are the headers about the limit, which refusals have as well.
	limits http.Header
}

// refusal is an answer that refuses a request.
type refusal struct {
	status  int
	code    int
	message string
	errors  map[string]any // of an invalid form
	// RetryAfter and Scope are those of a 429.
	retryAfter time.Duration
	scope      string
}

// refuse returns a refusal with a status, a code of the platform or 0, and a text.
func refuse(status, code int, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// invalid refuses a field of a body. The field is a path with dots.
func invalid(field, code, message string) *refusal {
	var tree any = map[string]any{"_errors": []any{map[string]any{"code": code, "message": message}}}
	parts := strings.Split(field, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		tree = map[string]any{parts[i]: tree}
	}
	return &refusal{status: http.StatusBadRequest, code: 50035, message: "Invalid Form Body", errors: tree.(map[string]any)}
}

// value returns a value of the path.
func (c *call) value(name string) string { return c.r.PathValue(name) }

// text returns a string of the body, or "".
func (c *call) text(key string) string {
	v, _ := c.body[key].(string)
	return v
}

// number returns a number of the body, or 0.
func (c *call) number(key string) int {
	v, _ := c.body[key].(float64)
	return int(v)
}

// has reports whether the body has a key, which may be null.
func (c *call) has(key string) bool {
	_, ok := c.body[key]
	return ok
}

// parse reads the body.
func (c *call) parse() *refusal {
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	invalidJSON := refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	switch {
	case kind == "multipart/form-data":
		if err := c.r.ParseMultipartForm(64 << 20); err != nil {
			return refuse(http.StatusBadRequest, 50109, "The multipart body is invalid: %v", err)
		}
		c.form = c.r.MultipartForm
		c.raw = json.RawMessage(c.r.FormValue("payload_json"))
	case c.r.Body != nil:
		raw, err := io.ReadAll(c.r.Body)
		if err != nil {
			return invalidJSON
		}
		if len(raw) > 0 && kind != "application/json" {
			return refuse(http.StatusBadRequest, 50035, "Expected \"Content-Type\" header to be one of {'application/json'}.")
		}
		c.raw = raw
	}
	if len(c.raw) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(c.raw, &v) != nil {
		return invalidJSON
	}
	c.body, _ = v.(map[string]any)
	return nil
}

// begin records a request and checks the rules about its time. It returns the fault that it meets, if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.channel = s.channels[c.value("channel")]
	if id := c.value("message"); id != "" && c.r.Method != http.MethodGet {
		if s.inFlight[id] {
			s.violate("%s while another request for message %s is in flight", c.route, id)
		}
		s.inFlight[id] = true
	}
	s.checkPenalty(c)
	match := func(f *Fault) (skip *int, ok bool) { return &f.Skip, f.Route == "" || f.Route == c.route }
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil {
		return s.opt.Chaos(c.route, c.value("channel"))
	}
	return nil
}

// end records how a request ended.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := c.value("message"); c.r.Method != http.MethodGet {
		delete(s.inFlight, id)
	}
	s.requests = append(s.requests, Request{At: c.at, Route: c.route, Channel: c.value("channel"), Body: c.body, Status: c.status})
	s.wake()
}

// serve answers a request with the result of run, which is called with mu locked. A fault can leave the request unanswered before or
// after it took effect.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route string, run func(*call) (any, *refusal)) {
	c := &call{s: s, r: r, route: route, at: time.Now(), limits: http.Header{}}
	failed := c.authorize()
	if failed == nil {
		failed = c.parse()
	}
	fault := s.begin(c)
	defer s.end(c)
	if fault != nil && !memory.WaitForRelease(r.Context(), fault.Release) || fault != nil && fault.Before {
		panic(http.ErrAbortHandler)
	}
	var result any
	if failed == nil {
		result, failed = s.run(c, fault, run)
	}
	if fault != nil && fault.After {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), c.limits)
	c.status = write(w, result, failed)
}

// run checks the limits and carries a request out. The order is that of the platform: limits first, then access, then the request
// itself.
func (s *Server) run(c *call, fault *Fault, run func(*call) (any, *refusal)) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault != nil && fault.Status != 0 {
		return nil, s.punish(c, fault)
	}
	if failed := s.limit(c); failed != nil {
		return nil, failed
	}
	if id := c.value("channel"); id != "" {
		if failed := s.access(s.channels[id]); failed != nil {
			return nil, failed
		}
	}
	return run(c)
}

// authorize checks the headers that every request needs.
func (c *call) authorize() *refusal {
	if !strings.HasPrefix(c.r.UserAgent(), "DiscordBot (") {
		return refuse(http.StatusForbidden, 40333, "internal network error") // what the proxies of the API answer
	}
	isOpen := strings.Contains(c.route, "{token}") // the token of an interaction is enough
	if !isOpen && c.r.Header.Get("Authorization") != "Bot "+c.s.opt.Token {
		return refuse(http.StatusUnauthorized, 0, "401: Unauthorized")
	}
	return nil
}

// access refuses requests for a channel that the bot can't use.
func (s *Server) access(o *room) *refusal {
	code := 10003
	if o != nil {
		code = o.refusal
	}
	switch code {
	case 0:
		return nil
	case 10003:
		return refuse(http.StatusNotFound, code, "Unknown Channel")
	}
	text := map[int]string{50001: "Missing Access", 50007: "Cannot send messages to this user", 50013: "Missing Permissions"}[code]
	return refuse(http.StatusForbidden, code, "%s", text)
}

// errNone is the result of a request that is answered without a body.
var errNone = errors.New("no content")

// write writes the answer and returns its status.
func write(w http.ResponseWriter, result any, failed *refusal) int {
	if failed == nil && result == errNone {
		w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	}
	status := http.StatusOK
	if failed != nil {
		status = failed.status
		result = failed.answer()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // the client has gone
	return status
}

// answer returns the body of a refusal.
func (f *refusal) answer() map[string]any {
	body := map[string]any{"message": f.message, "code": f.code}
	if f.errors != nil {
		body["errors"] = f.errors
	}
	if f.status == http.StatusTooManyRequests {
		body["retry_after"], body["global"] = f.retryAfter.Seconds(), f.scope == ScopeGlobal
		if f.code == 0 {
			delete(body, "code")
		}
	}
	return body
}
