package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// response is one that runs in the background: it goes on whoever listens.
type response struct {
	events    []string
	cancelled bool
}

// Hold lets the responses in the background tell so many events, those that came before among them, and no more until the
// next Hold; below 0 is all.
func (s *Server) Hold(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventLimit = events
	close(s.limitChanged)
	s.limitChanged = make(chan struct{})
}

// Cancelled are the ids of the responses that were cancelled.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.cancelled...)
}

// background tells a response that was asked for in the background; it reports false for any other.
func (s *Server) background(w http.ResponseWriter, r *http.Request, raw []byte, frames []string, f Fault) bool {
	var body struct {
		Background bool `json:"background"`
	}
	if json.Unmarshal(raw, &body) != nil || !body.Background {
		return false
	}
	s.mu.Lock()
	id := fmt.Sprintf("resp_%d", len(s.responses)+1)
	for i := range frames {
		frames[i] = strings.ReplaceAll(frames[i], "resp_0", id)
	}
	if f.Kind == Inside {
		frames = append(frames[:1:1], strings.ReplaceAll(s.api.failure(f.Says, f.Message), "resp_0", id))
		f = Fault{}
	}
	res := &response{events: frames}
	s.responses[id] = res
	s.mu.Unlock()
	s.sendEvents(w, r, res, 0, f)
	return true
}

// follow answers for a response that is in the background.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, action string) {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/responses/"), "/")
	s.mu.Lock()
	res := s.responses[id]
	var f Fault
	if action == "follow" && len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	if res != nil && action == "cancel" {
		res.cancelled = true
		s.cancelled = append(s.cancelled, id)
	}
	s.mu.Unlock()
	if res == nil {
		s.refuse(w, refusal{http.StatusNotFound, "invalid_request_error", "Response with id '" + id + "' not found."}, nil)
		return
	}
	if action == "cancel" {
		fmt.Fprintf(w, `{"id":%s,"status":"cancelled"}`, quote(id))
		return
	}
	if f.Kind == Status {
		s.refuse(w, refusal{f.Status, f.Says, f.Message}, f.Header)
		return
	}
	after, err := strconv.Atoi(r.URL.Query().Get("starting_after"))
	if err != nil || after < 0 || r.URL.Query().Get("stream") != "true" {
		s.refuse(w, refusal{http.StatusBadRequest, "invalid_request_error", "starting_after is a number, with stream=true"}, nil)
		return
	}
	w.Header().Set("Content-Type", s.api.media)
	s.sendEvents(w, r, res, after+1, f)
}

// tell tells the events of a response from one on, as far as they may be told.
func (s *Server) sendEvents(w http.ResponseWriter, r *http.Request, res *response, from int, f Fault) {
	for i := from; i < len(res.events); i++ {
		for {
			s.mu.Lock()
			limit, limitChanged := s.eventLimit, s.limitChanged
			s.mu.Unlock()
			if limit < 0 || i < limit {
				break
			}
			select {
			case <-limitChanged:
			case <-r.Context().Done():
				return
			}
		}
		if f.Kind == Reset && i-from >= f.After {
			reset(w)
			return
		}
		if f.Kind == Half && i-from >= f.After {
			fmt.Fprint(w, res.events[i][:len(res.events[i])/2])
			return
		}
		if _, err := fmt.Fprint(w, res.events[i]); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}
