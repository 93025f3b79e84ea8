// The view of a conversation: its log as a read-only stream of JSON.

package durable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// chunkSize is about how many bytes of a stream are read at once. A client that is far behind sends several requests.
const chunkSize = 1 << 20

// conversation answers GET and HEAD of a conversation.
func (s *surface) conversation(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	f, err := s.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	st := &conversationStream{feed: f}
	defer func() { st.feed.Release() }()
	if r.Method == http.MethodHead {
		return s.head(w, r, st)
	}
	return s.answerRead(w, r, p, st)
}

// head answers HEAD. The tail changes with each event, so nothing may store the answer.
func (s *surface) head(w http.ResponseWriter, r *http.Request, st stream) error {
	about, err := st.describe(r.Context())
	if err != nil {
		return err
	}
	about.setHead(w.Header())
	w.WriteHeader(http.StatusOK)
	return nil
}

// setHead sets the headers of HEAD.
func (d *description) setHead(h http.Header) {
	h.Set("Content-Type", d.contentType)
	h.Set(headerNextOffset, d.tail)
	h.Set("Cache-Control", "no-store")
	if d.isClosed {
		h.Set(headerClosed, isTrue)
	}
	h.Set("ETag", d.etag(offsetStart, &chunk{next: d.tail, isClosed: d.isClosed}))
}

// readOnly refuses to change a view, with the protocol's status for streams that can't be written.
func readOnly(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	return server.Errorf(http.StatusMethodNotAllowed, server.ReasonMethod,
		"%s is not possible: this stream shows what the gateway writes; send messages with the native protocol or another output", r.Method)
}

// conversationStream is a conversation as a stream. It has no end: a conversation can always continue.
type conversationStream struct {
	// Replaced when its writer gave it up.
	feed *gateway.Reader
}

var _ stream = (*conversationStream)(nil)

func (s *conversationStream) describe(context.Context) (description, error) {
	return description{id: s.feed.Conversation(), contentType: typeJSON, tail: offsetOf(s.feed.Cursor()), isMerged: true}, nil
}

func (s *conversationStream) follow(ctx context.Context, after string, to receiver) error {
	var c feed.Cursor
	if after == offsetStart {
		c = s.feed.CursorAt(0)
	} else {
		var err error
		if c, err = cursorOf(after); err != nil {
			return err
		}
	}
	// A feed may be given up by its writer meanwhile. Cursors stay valid, so the next feed continues.
	return poll(ctx, to, func() <-chan struct{} { return s.feed.Notify() }, func(ctx context.Context) (*chunk, error) {
		for {
			b, err := s.feed.Poll(ctx, c, chunkSize)
			if errors.Is(err, feed.ErrLost) {
				next, rerr := s.feed.Reattach(ctx)
				if rerr != nil {
					return nil, rerr
				}
				s.feed = next
				continue
			}
			if err != nil {
				return nil, err
			}
			if b == nil {
				return &chunk{next: offsetOf(c), isUpToDate: true}, nil
			}
			c = b.Cursor
			ch := &chunk{next: offsetOf(c), isUpToDate: b.Upto >= s.feed.Head()}
			data, err := records(b)
			if err != nil {
				return nil, err
			}
			if len(data) > 0 || ch.isUpToDate {
				if len(data) > 0 {
					ch.messages = []message{{data, ch.next}}
				}
				return ch, nil
			}
		}
	})
}

// records returns a batch as records: the events, or the snapshot that takes the place of everything before it.
// Events can cancel each other, so there may be none.
func records(b *feed.Batch) ([]byte, error) {
	if b.Reset {
		return b.Encode(feed.JSON)
	}
	return appendRecords(nil, b.Events)
}

// appendRecords appends events, separated by commas.
func appendRecords(data []byte, events []event.Event) ([]byte, error) {
	for i := range events {
		if len(data) > 0 {
			data = append(data, ',')
		}
		var err error
		if data, err = events[i].AppendJSON(data); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	return data, nil
}

// sameLog reports whether an offset belongs to a log with this epoch.
func sameLog(log, epoch string) bool {
	have, _, _ := strings.Cut(log, "_")
	return have == epoch
}
