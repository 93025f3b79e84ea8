package server

import (
	"net/http"
	"strings"
)

// Upgrades returns nil where a request asks for a WebSocket, and else the error that it is answered with.
func Upgrades(w http.ResponseWriter, r *http.Request) error {
	if r.ProtoMajor > 1 {
		// It can't be told by headers, which HTTP/2 forbids.
		return Errorf(http.StatusUpgradeRequired, ReasonInvalid, "this is a WebSocket: connect by HTTP/1.1")
	}
	if names(r.Header, "Connection", "upgrade") && names(r.Header, "Upgrade", "websocket") {
		return nil
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	return Errorf(http.StatusUpgradeRequired, ReasonInvalid, "this is a WebSocket: connect as one")
}

// names reports whether a header lists a word.
func names(h http.Header, name, word string) bool {
	for _, v := range list(h, name) {
		if strings.EqualFold(v, word) {
			return true
		}
	}
	return false
}
