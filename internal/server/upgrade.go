// The protocols to which connections may be upgraded. Everything else is refused before a handler runs.

package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
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

// Handshake is what a WebSocket needs of its request after the handshake. The request itself would keep several KB alive.
type Handshake struct{ acting http.Header }

// HandshakeOf returns the handshake of a request and a context with the values of the request that log, trace, audit and Request use. The
// context has no end.
func HandshakeOf(r *http.Request) (Handshake, context.Context) {
	ctx := context.WithValue(context.Background(), callerKey{}, callerOf(r))
	if addr := ClientAddr(r); addr.IsValid() {
		ctx = gateway.WithFrom(ctx, addr.String())
	}
	if trace := agent.TraceParent(r.Context()); trace != "" {
		ctx = agent.WithTraceParent(ctx, trace)
	}
	var h Handshake
	for _, name := range []string{HeaderSubject, HeaderTenant} {
		if values := r.Header.Values(name); len(values) > 0 {
			if h.acting == nil {
				h.acting = http.Header{}
			}
			h.acting[http.CanonicalHeaderKey(name)] = values
		}
	}
	return h, ctx
}

// Request returns a request for [Server.Authenticate]. The context must have the values of that of HandshakeOf.
func (h Handshake) Request(ctx context.Context) *http.Request {
	return (&http.Request{Header: h.acting}).WithContext(ctx)
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
	return slices.ContainsFunc(list(h, name), func(v string) bool { return strings.EqualFold(v, word) })
}
