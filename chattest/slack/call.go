package slack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// call is one request of the Web API.
type call struct {
	s *Server
	r *http.Request
	// method is the name of the method, such as chat.postMessage.
	method string
	// channel is the id of the channel, which two parameters can name, or empty.
	channel string
	// params are those of a form or of JSON, so a number may be a text.
	params  map[string]any
	at      time.Time
	message string // the message that it changes, or empty
	// o is the channel, once the method needs it.
	o *conversation
}

// answer is the answer to a request. Every refusal has the status 200, apart from that of a request which is too early.
type answer struct {
	// The status is 200 for refusals as well.
	status int
	body   map[string]any
	page   string // instead of the body
	// retryAfter is the header of a 429, in seconds.
	retryAfter string
}

// accept returns the answer to a request that has worked.
func accept(body map[string]any) *answer {
	if body == nil {
		body = map[string]any{}
	}
	body["ok"] = true
	return &answer{status: http.StatusOK, body: body}
}

// refuse returns a refusal with an error of the API.
func refuse(reason string) *answer {
	return &answer{status: http.StatusOK, body: map[string]any{"ok": false, "error": reason}}
}

// reason returns the error of a refusal, or "".
func (a *answer) reason() string {
	reason, _ := a.body["error"].(string)
	return reason
}

// write sends the answer.
func (a *answer) write(w http.ResponseWriter) {
	if a.page != "" {
		http.Error(w, a.page, a.status)
		return
	}
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // the client has gone
}

// api answers a request of the Web API.
func (s *Server) api(w http.ResponseWriter, r *http.Request, method string) {
	params, token, err := parse(r, method)
	if err != nil {
		refuse("invalid_form_data").write(w)
		return
	}
	c := &call{s: s, r: r, method: method, params: params, at: time.Now()}
	c.channel = c.text("channel")
	c.channel = cmp.Or(c.channel, c.text("channel_id"))
	// A request without a valid token meets no fault, because it is refused before it reaches the method.
	if refusal := s.authorize(method, token); refusal != nil {
		s.record(c, refusal)
		refusal.write(w)
		return
	}
	fault := s.begin(c)
	var a *answer
	defer func() { s.end(c, a) }()
	if fault != nil && (!memory.WaitForRelease(r.Context(), fault.Release) || fault.Before) {
		panic(http.ErrAbortHandler)
	}
	var result *answer
	if fault != nil {
		result = fault.answer()
		s.punish(c, fault)
	}
	if result == nil {
		result = c.run()
	}
	if fault != nil && fault.After {
		panic(http.ErrAbortHandler)
	}
	a = result
	a.write(w)
}

// formOnly are the methods that ignore a body of JSON.
var formOnly = []string{"users.info", "conversations.history", "conversations.replies", "files.getUploadURLExternal"}

// parse reads the parameters and the token of a request.
func parse(r *http.Request, method string) (params map[string]any, token string, err error) {
	params = map[string]any{}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 && !slices.Contains(formOnly, method) {
			err = json.Unmarshal(body, &params)
		}
		if err != nil {
			return nil, "", err
		}
	} else if err := r.ParseMultipartForm(32 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, "", err
	}
	for key, values := range r.Form {
		params[key] = values[0]
	}
	token, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if field, ok := params["token"].(string); ok && token == "" && kind != "application/json" {
		token = field // in the body of JSON it is not accepted
	}
	delete(params, "token")
	return params, token, nil
}

// authorize checks the token of a request.
func (s *Server) authorize(method, token string) *answer {
	expected := s.opt.Token
	if method == "apps.connections.open" {
		expected = s.opt.AppToken
	}
	switch {
	case token == "":
		return refuse("not_authed")
	case token == expected && expected != "":
		return nil
	case token == s.opt.Token || token == s.opt.AppToken:
		return refuse("not_allowed_token_type")
	}
	return refuse("invalid_auth")
}

// begin checks the rules about a request's time, and returns the fault that it meets, if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.r.URL.Query().Has("token") {
		s.violate("%s with a token in the address", c.method)
	}
	if o := s.channels[c.channel]; o != nil {
		if end := o.penalty[c.method]; c.at.Before(end) {
			s.violate("%s in %s, %v before the end of the penalty", c.method, c.channel, end.Sub(c.at))
		}
		if ts := c.text("ts"); ts != "" && !slices.Contains(formOnly, c.method) {
			c.message = ts
			if o.inFlight[ts] {
				s.violate("%s while another request for message %s is in flight", c.method, ts)
			}
			o.inFlight[ts] = true
		}
	}
	return s.fault(c.method, c.channel)
}

// punish begins the penalty of a fault.
func (s *Server) punish(c *call, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.RetryAfter > 0 {
		s.conversation(c.channel).penalty[c.method] = time.Now().Add(f.RetryAfter)
	}
}

// end records how a request ended. a is nil if it was not answered.
func (s *Server) end(c *call, a *answer) {
	s.mu.Lock()
	if o := s.channels[c.channel]; o != nil && c.message != "" {
		delete(o.inFlight, c.message)
	}
	s.mu.Unlock()
	s.record(c, a)
}

// record records a request that has ended.
func (s *Server) record(c *call, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Request{At: c.at, Method: c.method, Channel: c.channel, Params: c.params}
	if a != nil {
		r.Status, r.Error = a.status, a.reason()
	}
	s.requests = append(s.requests, r)
	s.wake()
}

// text returns a parameter as a text.
func (c *call) text(key string) string {
	switch v := c.params[key].(type) {
	case string:
		return v
	case nil, []any, map[string]any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// int returns a number, which may be written as a string, or 0.
func (c *call) int(key string) int {
	n, _ := strconv.Atoi(c.text(key)) // 0 if it is not a number
	return n
}

// bool returns a parameter that is true, or 1 as some clients write it.
func (c *call) bool(key string) bool {
	v := c.text(key)
	return v == "true" || v == "1"
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
