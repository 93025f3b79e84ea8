package durable

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// maxConnection is how long an event stream stays open. The protocol recommends about a minute, after which clients
// connect again: so caches can join new clients, and a gateway behind a load balancer gets its share of them.
const maxConnection = time.Minute

// typeEvents is the content type of event streams, which are always UTF-8. Clients of the protocol expect it without
// parameters.
const typeEvents = "text/event-stream"

// control is the event after the data: where the client resumes.
type control struct {
	Next     string `json:"streamNextOffset"`
	Cursor   string `json:"streamCursor,omitempty"`
	UpToDate bool   `json:"upToDate,omitempty"`
	Closed   bool   `json:"streamClosed,omitempty"`
}

// errDisconnected reports that a client has disconnected.
var errDisconnected = errors.New("durable: client disconnected")

// sse answers with an event stream.
//
// Each event with data is followed by one with its offset. A client that is disconnected between the two gets the
// data again.
func (rd *readRequest) sse() error {
	isText := strings.HasPrefix(mediaType(rd.about.contentType), "text/") || rd.about.isJSON()
	if !isText {
		rd.w.Header().Set(headerEncoding, "base64")
	}
	response, err := rd.srv.OpenStream(rd.w, rd.r, http.StatusOK, typeEvents)
	if response.Head() || err != nil {
		return nil
	}
	startTime := time.Now()
	beat := time.NewTicker(response.Beat)
	defer beat.Stop()
	write := func(b []byte) error {
		if response.Write(b) != nil {
			return errDisconnected
		}
		return nil
	}
	// isEmpty is true until something was sent: the first chunk gets an event with its offset even without data.
	next, isEmpty := rd.offset, true
	err = rd.stream.follow(rd.r.Context(), rd.offset, receiver{
		chunk: func(c *chunk) (bool, error) {
			var b []byte
			for i, m := range c.messages {
				b = appendEvent(b, "data", rd.encode(m, isText))
				b = rd.appendControl(b, m.next, c, i == len(c.messages)-1)
			}
			if len(c.messages) == 0 && (isEmpty || c.isClosed) {
				b = rd.appendControl(b, c.next, c, true)
			}
			next, isEmpty = c.next, false
			return time.Since(startTime) > maxConnection, write(b)
		},
		ticks: beat.C, tick: func() (bool, error) {
			b := rd.appendControl(nil, next, &chunk{isUpToDate: true}, true)
			return time.Since(startTime) > maxConnection, write(b)
		},
	})
	if err == nil || errors.Is(err, errDisconnected) || isEnded(rd.r.Context(), err) {
		return nil // the client resumes after the last offset that it has, or the stream is closed
	}
	if server.Describe(err).Status < http.StatusInternalServerError {
		return nil // the client gets the reason when it connects again
	}
	return fmt.Errorf("event stream: %w", err)
}

// encode returns the data of a message as the text of an event.
func (rd *readRequest) encode(m message, isText bool) []byte {
	switch {
	case rd.about.isJSON():
		return rd.about.join([]message{m})
	case isText:
		return m.data
	}
	return base64.StdEncoding.AppendEncode(nil, m.data)
}

// appendControl appends an event as JSON with the protocol's names, which have capitals here and underscores in subscriptions. A closed
// stream has no cursor, since its client must not connect again. appendControl appends the event after data. isLast says that it is after the last message of a chunk.
func (rd *readRequest) appendControl(b []byte, next string, c *chunk, isLast bool) []byte {
	e := control{Next: next, Closed: c.isClosed && isLast}
	if !e.Closed {
		e.Cursor, e.UpToDate = nextCursor(rd.cursor, time.Now()), c.isUpToDate && isLast
	}
	text, _ := json.Marshal(e) // never fails for these types
	return appendEvent(b, "control", text)
}

// lineEnds are what ends a line in an event stream. Each becomes a separate line of data, so that no text can contain
// an event.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// appendEvent appends an event. No space follows the colon, because clients would remove one that the data begins
// with.
func appendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), '\n')
	if bytes.IndexByte(data, '\r') >= 0 {
		data = []byte(lineEnds.Replace(string(data)))
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b = append(append(append(b, "data:"...), line...), '\n')
	}
	return append(b, '\n')
}
