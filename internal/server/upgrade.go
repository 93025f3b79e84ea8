// The protocols to which connections may be upgraded. Everything else is refused before a handler runs.

package server

import (
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// Upgrades checks that a request asks for a WebSocket. It returns the error for the client if it does not.
func Upgrades(w http.ResponseWriter, r *http.Request) error {
	if r.ProtoMajor > 1 {
		// HTTP/2 forbids the Connection and Upgrade headers (RFC 9113, section 8.2.2).
		return Errorf(http.StatusUpgradeRequired, ReasonInvalid, "this path is a WebSocket; connect with HTTP/1.1")
	}
	if names(r.Header, "Connection", "upgrade") && names(r.Header, "Upgrade", "websocket") {
		return nil
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	return Errorf(http.StatusUpgradeRequired, ReasonInvalid, "this path is a WebSocket; connect with a WebSocket client")
}

// DetachSocket adds to the options of a WebSocket that its connection needs no goroutine, if that is possible.
func (s *Server) DetachSocket(w http.ResponseWriter, r *http.Request, o socket.Options) socket.Options {
	if IsDetachable(r) {
		o.Poller = s.Poller()
		o.Detach = func(cancel func(cause error)) func() {
			end := Detach(w, cancel)
			return func() { end(0) } // only the handshake is counted
		}
	}
	return o
}

// names reports whether a header's list contains a word.
func names(h http.Header, name, word string) bool {
	for _, v := range list(h, name) {
		if strings.EqualFold(v, word) {
			return true
		}
	}
	return false
}
