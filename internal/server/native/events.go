package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
)

// events answers GET /api/conversations/{id}/events: the conversation from a cursor on, as SSE or NDJSON.
func (n *native) events(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	as, err := encoding(r)
	if err != nil {
		return err
	}
	f, err := n.gw.Feed(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	v := &viewer{n: n, p: p, as: as, feed: f, cursor: cursor(r)}
	defer func() { v.feed.Release() }()
	leave, err := n.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	media, metrics := server.EventStream, n.sse
	if as == feed.NDJSON {
		media, metrics = server.NDJSON, n.ndjson
	}
	w.Header().Add("Vary", "Accept")
	if v.st, err = n.s.OpenStream(w, r, http.StatusOK, media); err != nil || v.st.Head() {
		return err
	}
	v.seen = metrics.Open()
	defer v.seen.Close()
	return v.run(r.Context())
}

// encoding chooses by the Accept header.
func encoding(r *http.Request) (feed.Encoding, error) {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	for _, media := range []string{"application/x-ndjson", "application/ndjson", "application/jsonl"} {
		if strings.Contains(accept, media) {
			return feed.NDJSON, nil
		}
	}
	if accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*") || strings.Contains(accept, "text/*") {
		return feed.SSE, nil
	}
	return 0, server.Errorf(http.StatusNotAcceptable, server.ReasonInvalid, "Accept: text/event-stream or application/x-ndjson")
}

// cursor is where the reader stands. A browser that reconnects by itself keeps its URL and adds the header, so that wins.
func cursor(r *http.Request) feed.Cursor {
	if c := r.Header.Get("Last-Event-ID"); c != "" {
		return feed.Cursor(c)
	}
	return feed.Cursor(r.URL.Query().Get("after"))
}

// viewer is one reader of one conversation over a response that goes on.
type viewer struct {
	n      *native
	p      gateway.Principal
	as     feed.Encoding
	feed   *gateway.Reader
	st     *server.Stream
	cursor feed.Cursor
	seen   *server.Viewer
}

// run writes until the client or the server goes, or the conversation does. Only what went wrong here is an error.
func (v *viewer) run(ctx context.Context) error {
	hello, err := json.Marshal(helloFrame{Type: "hello", Protocol: Protocol, Conversation: v.feed.Conversation(), Turns: open(v.feed.Feed), Head: v.feed.Head()})
	if err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	first := v.frame(hello)
	if v.as == feed.SSE {
		first = append(sse.AppendRetry(nil, retryHint), first...)
	}
	if v.st.Write(first) != nil {
		return nil // the client is gone
	}
	err = v.follow(ctx)
	if errors.Is(err, errGone) || errors.Is(err, context.Canceled) {
		return nil
	}
	last, merr := json.Marshal(newError("error", "", v.feed.Conversation(), err))
	if merr != nil {
		return fmt.Errorf("last frame: %w", merr)
	}
	frame := v.frame(last)
	if after := server.Describe(err).RetryAfter; after > 0 && v.as == feed.SSE {
		frame = append(sse.AppendRetry(nil, after), frame...) // a browser's EventSource reads no frames
	}
	_ = v.st.Write(frame) // best effort: a client that did not get it finds out when it comes back
	if server.Describe(err).Status == http.StatusInternalServerError {
		return err
	}
	return nil
}

// errGone says that the client takes nothing any more.
var errGone = errors.New("native: client is gone")

// follow writes what the feed has, again and again, and heartbeats when there is nothing. It returns why it ended.
func (v *viewer) follow(ctx context.Context) error {
	beat := time.NewTimer(v.st.Beat)
	defer beat.Stop()
	for {
		changed := v.feed.Notify()
		b, err := v.feed.Poll(ctx, v.cursor, batchBudget)
		if errors.Is(err, feed.ErrLost) {
			if err := v.again(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if b != nil {
			frame, err := b.Encode(v.as)
			if err != nil {
				return err
			}
			if err := v.st.Write(frame); err != nil {
				return errGone
			}
			v.seen.Wrote(v.cursor, b, len(frame))
			v.cursor = b.Cursor
			beat.Reset(v.st.Beat)
			continue
		}
		v.seen.Idle(v.cursor)
		select {
		case <-changed:
		case <-beat.C:
			if v.heartbeat() != nil {
				return errGone
			}
			beat.Reset(v.st.Beat)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// again takes the conversation's new feed after its owner gave the old one up. The cursor stays good.
func (v *viewer) again(ctx context.Context) error {
	f, err := v.n.gw.Feed(ctx, v.p, v.feed.Conversation())
	if err != nil {
		return err
	}
	v.feed.Release()
	v.feed = f
	return nil
}

// frame wraps a frame's JSON as the stream has it. It has no id: it moves no cursor.
func (v *viewer) frame(json []byte) []byte {
	if v.as == feed.NDJSON {
		return append(json, '\n')
	}
	b, err := sse.AppendEvent(nil, "", "", json)
	if err != nil {
		panic(err) // only an id or a name can be wrong
	}
	return b
}

func (v *viewer) heartbeat() error {
	if v.as == feed.NDJSON {
		return v.st.Write(append(pingFrame[:len(pingFrame):len(pingFrame)], '\n'))
	}
	return v.st.Comment("ping")
}
