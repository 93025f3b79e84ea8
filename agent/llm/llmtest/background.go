package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// response is a background response. It continues independently of its readers: all of its events exist from
// the beginning, and only Hold limits how many of them a reader gets.
type response struct {
	events    []string
	cancelled bool
}

// Hold limits background responses to their first events; it releases those that wait below the new limit. A
// negative number removes the limit. With Hold a test can stop a gateway while a response is in progress, at a
// known event.
func (s *Server) Hold(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventLimit = events
	close(s.limitChanged)
	s.limitChanged = make(chan struct{})
}

// Cancelled returns the ids of the cancelled responses, in order. An id that was cancelled twice is in it
// twice.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cancelled)
}

// background creates a background response and sends its events, if the request asks for one. Otherwise it
// returns false. An Inside fault replaces all events after the first one by the failure, because following the
// response must show the same failure again. Other faults affect only this connection.
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

// follow handles requests for an existing background response. action is "follow" or "cancel". A request to
// follow takes the next fault, as a call does, so that a test can break the resumed stream again. Like the real
// API it requires stream=true and the number of the last event that the client has; the first event that is
// sent has the next number. A cancelled response keeps its events: a client that has cancelled a response
// doesn't follow it any more, so the server doesn't imitate the rest.
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

// sendEvents sends the events of a response from the given index on. At the limit of Hold it waits until the
// limit changes or the client disconnects. The faults Reset and Half end the connection after f.After events of
// this connection, not of the response.
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
