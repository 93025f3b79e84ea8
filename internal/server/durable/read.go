// Reading: the parameters of a GET, and the three ways in which it is answered.

package durable

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// The values of the parameter live.
const (
	livePoll = "long-poll"
	liveSSE  = "sse"
)

// query are the parameters of a read.
type query struct {
	offset, mode, cursor string
}

// parseQuery checks the parameters. They are the same for all streams, so they are checked before a stream is looked
// up.
func parseQuery(values url.Values) (q query, err error) {
	offsets, hasOffset := values["offset"]
	q = query{offsetStart, values.Get("live"), values.Get("cursor")}
	switch {
	case len(offsets) > 1:
		return q, server.Invalid("the offset is given %d times; send one", len(offsets))
	case hasOffset:
		q.offset = offsets[0]
	case q.mode != "":
		return q, server.Invalid("live reads need an offset; begin with offset=-1 or offset=now")
	}
	if q.mode != "" && q.mode != livePoll && q.mode != liveSSE {
		return q, server.Invalid("live=%.64q is unknown; use %s or %s", q.mode, livePoll, liveSSE)
	}
	if q.offset != offsetStart && q.offset != offsetNow {
		_, _, err = parseOffset(q.offset)
	}
	return q, err
}

// readRequest is one request that reads a stream.
type readRequest struct {
	*surface
	w http.ResponseWriter
	r *http.Request
	p gateway.Principal
	query
	stream stream
	about  description
}

// answerRead answers a GET.
func (s *surface) answerRead(w http.ResponseWriter, r *http.Request, p gateway.Principal, st stream) error {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return err
	}
	about, err := st.describe(r.Context())
	if err != nil {
		return err
	}
	rd := &readRequest{surface: s, w: w, r: r, p: p, query: q, stream: st, about: about}
	if q.offset == offsetNow {
		rd.offset = about.tail
	}
	// Only a catch-up read from the end has nothing to say but where the end is. Live reads wait there.
	switch {
	case q.mode == liveSSE:
		return rd.viewing(rd.sse)
	case q.mode == livePoll:
		return rd.viewing(rd.longPoll)
	case q.offset == offsetNow:
		return rd.tail()
	}
	return rd.catchUp()
}

// viewing counts the client as a viewer while it waits for data.
func (rd *readRequest) viewing(answer func() error) error {
	leave, err := rd.gw.AddViewer(rd.p)
	if err != nil {
		return err
	}
	defer leave()
	metrics := rd.viewers.Open()
	defer metrics.Close()
	if rd.query.offset != offsetStart {
		metrics.SetResumed()
	}
	return answer()
}

// tail answers a read of nothing, by which a client learns where the stream ends.
func (rd *readRequest) tail() error {
	rd.describeChunk(&chunk{next: rd.about.tail, isUpToDate: true, isClosed: rd.about.isClosed})
	rd.w.Header().Set("Cache-Control", "no-store")
	return rd.body(nil)
}

// catchUp answers with what exists. A client that has less than everything asks again.
func (rd *readRequest) catchUp() error {
	return rd.stream.follow(rd.r.Context(), rd.offset, receiver{chunk: func(c *chunk) (bool, error) { return true, rd.respond(c) }})
}

// longPoll answers when there is data, when the stream is closed, or after a while.
func (rd *readRequest) longPoll() error {
	timeout := time.NewTimer(rd.wait)
	defer timeout.Stop()
	next := rd.offset
	return rd.stream.follow(rd.r.Context(), rd.offset, receiver{
		chunk: func(c *chunk) (bool, error) {
			next = c.next
			if len(c.messages) == 0 && !c.isClosed {
				return false, nil
			}
			rd.w.Header().Set(headerCursor, nextCursor(rd.cursor, time.Now()))
			if len(c.messages) == 0 {
				return true, rd.empty(c)
			}
			return true, rd.respond(c)
		},
		ticks: timeout.C, tick: func() (bool, error) {
			rd.w.Header().Set(headerCursor, nextCursor(rd.cursor, time.Now()))
			return true, rd.empty(&chunk{next: next, isUpToDate: true})
		},
	})
}

// empty answers a long poll without data.
func (rd *readRequest) empty(c *chunk) error {
	rd.describeChunk(c)
	rd.w.Header().Set("Cache-Control", "no-store")
	rd.w.WriteHeader(http.StatusNoContent)
	return nil
}

// respond sends a chunk, unless the client has it already.
func (rd *readRequest) respond(c *chunk) error {
	rd.describeChunk(c)
	h := rd.w.Header()
	// A read can be repeated from the browser's cache only after it has asked whether the data still exists and may
	// still be read.
	h.Set("Cache-Control", "private, no-cache")
	etag := rd.about.etag(rd.query.offset, c)
	h.Set("ETag", etag)
	if matches(rd.r.Header.Get("If-None-Match"), etag) {
		rd.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return rd.body(c.messages)
}

// describeChunk sets the headers about a chunk.
func (rd *readRequest) describeChunk(c *chunk) {
	h := rd.w.Header()
	h.Set(headerNextOffset, c.next)
	if c.isUpToDate {
		h.Set(headerUpToDate, isTrue)
	}
	if c.isClosed {
		h.Set(headerClosed, isTrue)
	}
}

// body sends messages: as one array in streams of JSON, and otherwise one after another.
func (rd *readRequest) body(messages []message) error {
	rd.w.Header().Set("Content-Type", rd.about.contentType)
	b := rd.about.join(messages)
	rd.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	rd.w.WriteHeader(http.StatusOK)
	_, err := rd.w.Write(b)
	if err != nil && rd.r.Context().Err() != nil {
		return nil // the client disconnected
	}
	return err
}

// isJSON reports whether the stream consists of JSON values.
func (d *description) isJSON() bool { return mediaType(d.contentType) == typeJSON }

// join returns the body that has the messages.
func (d *description) join(messages []message) []byte {
	size := 2
	for _, m := range messages {
		size += len(m.data) + 1
	}
	b := make([]byte, 0, size)
	if !d.isJSON() {
		for _, m := range messages {
			b = append(b, m.data...)
		}
		return b
	}
	b = append(b, '[')
	for _, m := range messages {
		if len(b) > 1 && len(m.data) > 0 {
			b = append(b, ',')
		}
		b = append(b, m.data...)
	}
	return append(b, ']')
}

// etag names the data, the offset that the client sent, and where the response ends. Two clients that ask for the same stretch share it.
// etag identifies the response with a chunk. A close changes it, because otherwise a client would not learn of the
// close.
func (d *description) etag(start string, c *chunk) string {
	tag := `"` + d.id + ":" + start + ":" + c.next
	if c.isClosed {
		tag += ":c"
	}
	tag += `"`
	if d.isMerged {
		return "W/" + tag
	}
	return tag
}

// matches reports whether a header If-None-Match names an entity tag. Weak and strong tags are the same to it (RFC
// 9110, section 13.1.2).
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// mediaType returns a content type without its parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// Cursors keep shared caches from repeating an answer without data forever: clients send them back, so that the
// address changes with time. The protocol counts intervals of 20 seconds since a day in 2024.
const cursorInterval = 20 * time.Second

var cursorEpoch = time.Date(2024, time.October, 9, 0, 0, 0, 0, time.UTC)

// maxJitter is how far a cursor is moved on that a client has sent already, in seconds.
const maxJitter = 3600

// nextCursor returns a cursor that is above that of the client.
func nextCursor(clientCursor string, at time.Time) string {
	current := int64(at.Sub(cursorEpoch) / cursorInterval)
	if n, err := strconv.ParseInt(clientCursor, 10, 64); err == nil && n >= current && n < 1<<52 {
		jitter := time.Duration(1+rand.IntN(maxJitter)) * time.Second
		current = n + int64((jitter+cursorInterval-1)/cursorInterval)
	}
	return strconv.FormatInt(current, 10)
}

// isEnded reports whether a live read has ended in one of the ways that its client expects: it has disconnected, or
// has to connect again.
func isEnded(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return server.Restarting(err) || server.Restarting(cause) || errors.Is(cause, context.Canceled) || errors.Is(err, server.ErrExpired)
}
