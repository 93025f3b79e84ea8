package matrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// call is one request.
type call struct {
	s *Server
	r *http.Request
	// route is the kind of the request, as in [Fault.Route].
	route string
	at    time.Time
	// device belongs to the access token. Transaction ids are unique for it.
	device string
	// raw is the body as it arrived, which is a file for uploads.
	raw     []byte
	content map[string]any // the JSON body
	message string         // the message that it creates or changes, or empty
	status  int
}

// failure is an answer that refuses a request.
type failure struct {
	status int
	// The code is the errcode, by which clients decide. The text is for people.
	code, text string
	retryAfter time.Duration // of a 429
}

// refuse returns a refusal with an errcode of the specification.
func refuse(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, text: fmt.Sprintf(format, args...)}
}

// tooMany returns the refusal of a request that came too early.
func tooMany(retryAfter time.Duration) *failure {
	return &failure{http.StatusTooManyRequests, "M_LIMIT_EXCEEDED", "Too Many Requests", retryAfter}
}

// blob is the answer of a download.
type blob struct {
	*File
}

// handler returns the handler of a route.
func (s *Server) handler(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, r: r, route: rt.name, at: time.Now()}
		failed := c.authenticate(rt.isOpen)
		if failed == nil {
			failed = c.readBody()
		}
		if failed != nil {
			write(w, nil, failed)
			return
		}
		// A sync may take a minute, so it is served without the lock and without faults for all requests.
		if rt.name == "sync" {
			s.sync(w, c)
			return
		}
		fault := s.begin(c)
		defer s.end(c)
		if fault != nil && (!memory.WaitForRelease(r.Context(), fault.Release) || fault.Before) {
			panic(http.ErrAbortHandler)
		}
		var result any
		if fault != nil && fault.Status != 0 {
			failed = fault.failure()
		} else {
			s.mu.Lock()
			result, failed = rt.run(c)
			s.mu.Unlock()
		}
		s.punish(c, failed)
		if fault != nil && fault.After {
			panic(http.ErrAbortHandler)
		}
		c.status = write(w, result, failed)
	}
}

// authenticate checks the access token, which has to be in a header.
func (c *call) authenticate(isOpen bool) *failure {
	if isOpen {
		return nil
	}
	token, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return refuse(http.StatusUnauthorized, "M_MISSING_TOKEN", "missing access token")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.device = c.s.devices[token]; c.device == "" {
		return refuse(http.StatusUnauthorized, "M_UNKNOWN_TOKEN", "Unknown token")
	}
	if user := c.r.PathValue("user"); user != "" && user != c.s.opt.User && !strings.HasPrefix(c.r.Pattern, "GET") {
		return refuse(http.StatusForbidden, "M_FORBIDDEN", "Cannot act for other users")
	}
	return nil
}

// readBody reads the body. It has to be a JSON object, except that of an upload.
func (c *call) readBody() *failure {
	var err error
	if c.raw, err = io.ReadAll(c.r.Body); err != nil {
		return refuse(http.StatusBadRequest, "M_NOT_JSON", "the body can't be read")
	}
	if c.route == "upload" || len(c.raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.raw))
	// A float64 would hide whether an integer is too large.
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return refuse(http.StatusBadRequest, "M_NOT_JSON", "The request body could not be decoded as JSON: %v", err)
	}
	content, ok := v.(map[string]any)
	if !ok {
		return refuse(http.StatusBadRequest, "M_BAD_JSON", "The request body is not a JSON object")
	}
	c.content = content
	return nil
}

// canonical returns the canonical JSON of a value. It refuses numbers that it can't contain.
func canonical(v any) ([]byte, *failure) {
	if !isCanonical(v) {
		return nil, refuse(http.StatusBadRequest, "M_BAD_JSON", "Bad JSON value: float or too large integer")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, refuse(http.StatusBadRequest, "M_BAD_JSON", "%v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isCanonical reports whether all numbers are integers that a float64 can represent.
func isCanonical(v any) bool {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		return err == nil && math.Abs(float64(n)) < 1<<53
	case map[string]any:
		for _, o := range v {
			if !isCanonical(o) {
				return false
			}
		}
	case []any:
		for _, o := range v {
			if !isCanonical(o) {
				return false
			}
		}
	}
	return true
}

// begin records a request, checks the rules about its time, and returns the fault that it meets, if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A request that began at the same time as the penalty could not know about it.
	if p := s.penalties[limiter(c.route)]; c.at.After(p.begin) && c.at.Before(p.end) {
		s.violate("%s %v before the end of the penalty", c.route, p.end.Sub(c.at))
	}
	switch c.route {
	case "send":
		if c.message = text(relation(c.content), "event_id"); text(relation(c.content), "rel_type") != "m.replace" {
			c.message = c.r.URL.Path
		}
	case "redact":
		c.message = c.r.PathValue("event")
	}
	if c.message != "" {
		if s.inFlight[c.message] {
			s.violate("%s while another request for message %s is in flight", c.route, c.message)
		}
		s.inFlight[c.message] = true
	}
	match := func(f *Fault) (skip *int, ok bool) { return &f.Skip, f.Route == "" || f.Route == c.route }
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil {
		return s.opt.Chaos(c.route, c.r.PathValue("room"))
	}
	return nil
}

// end records how a request ended.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, c.message)
	s.requests = append(s.requests, Request{
		At: c.at, Path: c.r.URL.Path, Route: c.route, Room: c.r.PathValue("room"), Content: c.content, Status: c.status,
	})
	s.wake()
}

// penalty is a time in which requests are refused.
type penalty struct {
	// A request that arrived at the beginning could not know of the penalty.
	begin, end time.Time
}

// punish begins the penalty of a 429.
func (s *Server) punish(c *call, failed *failure) {
	if failed == nil || failed.status != http.StatusTooManyRequests {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := time.Now()
	s.penalties[limiter(c.route)] = penalty{begin, begin.Add(failed.retryAfter)}
}

// limiter returns which rate limit counts a request. Redactions are counted with messages.
func limiter(route string) string {
	if route == "redact" {
		return "send"
	}
	return route
}

// violate records what the bot should not have done. mu must be locked.
func (s *Server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// write writes the answer and returns its status.
func write(w http.ResponseWriter, result any, failed *failure) int {
	if file, ok := result.(blob); ok && failed == nil {
		w.Header().Set("Content-Type", file.Type)
		_, _ = w.Write(file.Content) // the client has gone
		return http.StatusOK
	}
	status, answer := http.StatusOK, result
	if failed != nil {
		status = failed.status
		body := map[string]any{"errcode": failed.code, "error": failed.text}
		if failed.status == http.StatusTooManyRequests {
			body["retry_after_ms"] = failed.retryAfter.Milliseconds()
			w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(failed.retryAfter.Seconds()))))
		}
		if failed.code == "M_UNKNOWN_TOKEN" {
			body["soft_logout"] = false
		}
		answer = body
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
	return status
}
