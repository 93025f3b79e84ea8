// The names of the protocol's headers and parameters, and what every response has.

package durable

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// The headers of requests and responses, in the spelling of the protocol's document.
const (
	// Where a reader continues, or the end of the stream.
	headerNextOffset = "Stream-Next-Offset"
	// The response reaches the end of the stream.
	headerUpToDate = "Stream-Up-To-Date"
	// In responses, nothing follows any more. In requests, close the stream.
	headerClosed = "Stream-Closed"
	// Of live reads: see nextCursor.
	headerCursor = "Stream-Cursor"
	// Event streams of bytes are in base64.
	headerEncoding = "Stream-SSE-Data-Encoding"

	// Seconds after the last use.
	headerTTL = "Stream-TTL"
	// A time of RFC 3339.
	headerExpiresAt = "Stream-Expires-At"
	// Compared as text, must grow.
	headerSeq = "Stream-Seq"
	// The path or URL of the source.
	headerForkedFrom = "Stream-Forked-From"
	headerForkOffset = "Stream-Fork-Offset"
	headerForkSub    = "Stream-Fork-Sub-Offset"
	// The three headers of a producer come together.
	headerProducerID  = "Producer-Id"
	headerProducerSeq = "Producer-Seq"

	headerProducerEpoch = "Producer-Epoch"
	// What is missing before an append of a producer, and what came instead.
	headerExpectedSeq = "Producer-Expected-Seq"
	headerReceivedSeq = "Producer-Received-Seq"
)

// isTrue is the only value of the headers that are present or absent.
const isTrue = "true"

const (
	typeJSON  = "application/json"
	typeBytes = "application/octet-stream"
)

// secured adds the headers for browsers that the protocol requires on every response. Pages of other origins read
// streams with CORS, to which this policy doesn't apply. It prevents them from embedding a stream as an image or a
// script.
func secured(h server.Handler) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		return h(w, r, p)
	}
}

// respondError responds with one sentence, because the protocol's clients show the body of an error as it is.
func respondError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	h := w.Header()
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	chats.RespondError(w, r, e)
}
