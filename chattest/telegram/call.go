package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// call is one request.
type call struct {
	s       *Server
	method  string
	params  map[string]any
	form    *multipart.Form // of a request with files, or nil
	at      time.Time
	status  int
	message int64 // the message that it changes, or 0
}

// parse reads the parameters of a request from its query and its body, which may be JSON, a form or multipart.
func parse(r *http.Request) (map[string]any, error) {
	params := map[string]any{}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &params); err != nil {
				return nil, err
			}
		}
	case "multipart/form-data":
		// Some clients send a multipart body without parts for a method without parameters.
		if err := r.ParseMultipartForm(64 << 20); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	default:
		if err := r.ParseForm(); err != nil {
			return nil, err
		}
	}
	if r.Form == nil {
		r.Form = r.URL.Query()
	}
	for key, values := range r.Form {
		params[key] = values[0]
	}
	return params, nil
}

// text returns a parameter as a text, or "" if it is missing. Clients write numbers and booleans in both forms.
func (c *call) text(key string) string {
	switch v := c.params[key].(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// int returns a number, which may be written as a string.
func (c *call) int(key string) int64 {
	switch v := c.params[key].(type) {
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // 0 if it is not a number
		return n
	}
	return 0
}

// bool returns a parameter that is true, as JSON or as the text of a form.
func (c *call) bool(key string) bool {
	v := c.params[key]
	return v == true || v == "true"
}

// object decodes a parameter that is an object or a list, as JSON or as a string of JSON. A missing one leaves v as it is.
func (c *call) object(key string, v any) error {
	switch p := c.params[key].(type) {
	case nil:
		return nil
	case string:
		if p == "" {
			return nil
		}
		return json.Unmarshal([]byte(p), v)
	default:
		raw, err := json.Marshal(p)
		return errors.Join(err, json.Unmarshal(raw, v))
	}
}

// begin records a request, checks the rules about its time, and returns the fault that it meets, if any. A request that it starts has
// to be ended by end, also one that is left unanswered.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := c.int("chat_id")
	if o := s.chats[id]; o != nil {
		if c.at.Before(o.penalty) {
			s.violations = append(s.violations, fmt.Sprintf("%s for chat %d, %v before the end of the penalty", c.method, id, o.penalty.Sub(c.at)))
		}
		if c.message = c.int("message_id"); c.message != 0 {
			if o.inFlight[c.message] {
				s.violations = append(s.violations, fmt.Sprintf("%s while another request for message %d is in flight", c.method, c.message))
			}
			o.inFlight[c.message] = true
		}
	}
	match := func(f *Fault) (skip *int, ok bool) { return &f.Skip, f.Method == "" || f.Method == c.method }
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil {
		return s.opt.Chaos(c.method, id)
	}
	return nil
}

// end records how a request ended.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := c.int("chat_id")
	if o := s.chats[id]; o != nil && c.message != 0 {
		delete(o.inFlight, c.message)
	}
	s.requests = append(s.requests, Request{At: c.at, Method: c.method, Chat: id, Params: c.params, Status: c.status})
	s.wake()
}

// punish begins the penalty of a fault.
func (s *Server) punish(c *call, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.RetryAfter > 0 {
		s.chat(c.int("chat_id")).penalty = time.Now().Add(f.RetryAfter)
	}
}
