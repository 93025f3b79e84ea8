package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"

	"github.com/leat-dev/leat/agent"
)

// headerRequestID contains the id of a request, in the response and in the log. The id of a trusted proxy is used, so that both
// logs match; from other clients the header is ignored.
const headerRequestID = "X-Request-Id"

// RequestID returns the id of a context's request, or "" outside of requests.
func RequestID(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c.request
	}
	return ""
}

var (
	requestID   = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// label gives a request of resolve its id and joins the client's trace. The work of a turn that the request starts belongs to the same
// trace.
func (s *Server) label(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(headerRequestID)
	if !s.trusted(r, parseAddr(r.RemoteAddr)) || !requestID.MatchString(id) {
		id = rand.Text()[:16]
	}
	w.Header().Set(headerRequestID, id)
	callerOf(r).request = id
	if tp := r.Header.Get("Traceparent"); traceParent.MatchString(tp) {
		r = r.WithContext(agent.WithTraceParent(r.Context(), tp))
	}
	return r
}
