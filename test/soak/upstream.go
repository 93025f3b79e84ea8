package soak

import (
	"encoding/json"
	"net/http"
	"time"
)

// upstream is an agent behind a URL, of the kind http. It says the script that its message names.
type upstream struct {
	pace time.Duration // between two words
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
	out := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	for _, word := range s.pieces() {
		if err := enc.Encode(map[string]string{"type": "chunk", "text": word}); err != nil {
			return // the gateway is gone
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-time.After(u.pace):
		case <-r.Context().Done():
			return
		}
	}
	if s.cut == 0 {
		_ = enc.Encode(map[string]string{"type": "done"}) // the gateway may be gone
	}
}
