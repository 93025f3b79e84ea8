package soak

import (
	"encoding/json"
	"net/http"
	"time"
)

// upstream is the HTTP agent of the gateway. Each request's message names a script, which it streams word by word.
type upstream struct {
	pace time.Duration // pause after each word
}

func (u upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Message struct {
			Text string `json:"text"`
		} `json:"message"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, err := parseScript(in.Message.Text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	controller := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	for _, word := range s.pieces() {
		if err := enc.Encode(map[string]string{"type": "chunk", "text": word}); err != nil {
			return // the gateway was killed
		}
		if err := controller.Flush(); err != nil {
			return
		}
		select {
		case <-time.After(u.pace):
		case <-r.Context().Done():
			return
		}
	}
	if s.breakAfter == 0 {
		_ = enc.Encode(map[string]string{"type": "done"}) // the gateway may have been killed
	}
}
