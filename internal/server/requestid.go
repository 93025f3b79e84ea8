package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"

	"github.com/leat-dev/leat/agent"
)

// HeaderRequestID names a request in the answer and in the log. A trusted proxy's is kept, so that its log and ours tell
// of the same; what anybody else sends is not looked at.
const HeaderRequestID = "X-Request-Id"

type requestIDKey struct{}

// RequestID returns the id of the request that a context belongs to; empty outside of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

var (
	requestID   = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// label gives a request its id, and takes up the trace that its client is in. What a turn does that it asks for is part
// of that trace.
func (s *Server) label(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(HeaderRequestID)
	if !s.trusted(r, parseAddr(r.RemoteAddr)) || !requestID.MatchString(id) {
		id = rand.Text()[:16]
	}
	w.Header().Set(HeaderRequestID, id)
	ctx := context.WithValue(r.Context(), requestIDKey{}, id)
	if tp := r.Header.Get("Traceparent"); traceParent.MatchString(tp) {
		ctx = agent.WithTraceParent(ctx, tp)
	}
	return r.WithContext(ctx)
}
