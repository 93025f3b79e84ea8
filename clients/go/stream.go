// The event stream of one conversation. It reconnects at its cursor until the caller stops it or the error is permanent.

package leat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

// Frame is one frame of a conversation's stream.
type Frame struct {
	Type         string `json:"type"` // hello, snapshot, batch, error, or a type of a later version
	Conversation string `json:"conversation"`
	// Cursor is the position after this frame. It is set for snapshots and batches.
	Cursor string `json:"cursor"`

	Protocol string            `json:"protocol"` // hello
	Turns    []transcript.Turn `json:"turns"`    // hello: the unfinished turns

	Epoch        string               `json:"epoch"` // snapshot: the log's epoch; Seq values of different epochs aren't comparable
	Reset        bool                 `json:"reset"`
	FirstMessage string               `json:"first"`
	Earlier      bool                 `json:"earlier"`
	Transcript   *transcript.Snapshot `json:"transcript"`

	Seq    int64         `json:"seq"` // batch: of its cursor
	Events []event.Event `json:"events"`

	Error      string `json:"error"`
	Reason     string `json:"reason"`
	RetryAfter int64  `json:"retryAfter"` // milliseconds

	// Raw is the received JSON. It is valid until the callback returns.
	Raw []byte `json:"-"`
}

// protocol is the protocol version of this client.
const protocol = "leat/1"

// silence is the longest time without a byte before a connection counts as dead. The gateway sends at least a heartbeat every 15 s.
const silence = 45 * time.Second

// StreamOptions are the options of [Client.Stream]. All fields are optional.
type StreamOptions struct {
	// Cursor is the position to resume from. If it is empty, the stream begins with a snapshot.
	Cursor string
	// OnDisconnect, if set, is called each time a connection fails, with the reason and the wait until the next attempt.
	OnDisconnect func(err error, next time.Duration)
	// A receive from Hurry ends a wait early. It is for programs that know when the network is available again.
	Hurry <-chan struct{}
}

// Stream calls fn with a conversation's frames: the hello of each connection, snapshots and batches. After a disconnect it reconnects and
// resumes from the cursor of the last frame for which fn returned nil. If a token expires, it continues with the next one of TokenSource.
//
// Stream returns nil if fn returns ErrStop, any other error of fn, the context's cause, or an error of the gateway that a retry can't
// solve: the conversation doesn't exist or the token is wrong.
func (c *Client) Stream(ctx context.Context, id string, o StreamOptions, fn func(*Frame) error) error {
	s := &stream{id: id, cursor: o.Cursor, fn: fn, reconnector: reconnector{client: c, silence: errSilence, onDisconnect: o.OnDisconnect, hurry: o.Hurry}}
	return s.run(ctx, func() (isAccepted bool, err error) {
		err = s.connect(ctx)
		if own, ok := errors.AsType[*ownError](err); ok && errors.Is(own, errResync) {
			// Start from a snapshot. This counts as a failure, so that a gateway whose frames never apply isn't called in a tight loop.
			s.cursor, s.resyncs = "", true
			err = own.error
		}
		return s.greeted, err
	})
}

// errResync is returned by a callback that can't apply a frame. The stream then continues with a snapshot.
var errResync = errors.New("leat: resync")

// errSilence reports a connection without heartbeats. Stream reconnects at once, because the time of silence was wait enough.
var errSilence = fmt.Errorf("no data received for %v", silence)

// ownError marks an error of the caller's callback, which ends the stream.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

type stream struct {
	reconnector
	id     string
	cursor string
	fn     func(*Frame) error
	// greeted is true if the gateway has accepted the token of the current connection.
	greeted bool
	// resyncs is true after a frame could not be applied, until one is.
	resyncs bool
}

// connect reads one connection to its end. It never returns nil. A timer cancels the connection if no byte arrives for the time of
// silence. It also covers the wait for the response's headers. The sse.Reader keeps a frame that is split over several reads.
func (s *stream) connect(ctx context.Context) error {
	s.greeted = false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilence) })
	defer watch.Stop()

	req, err := s.client.request(ctx, http.MethodGet, conversation(s.id, "/events"), nil)
	switch {
	case errors.Is(err, ErrToken):
		return err
	case err != nil:
		return &ownError{err}
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.cursor != "" {
		req.Header.Set("Last-Event-ID", s.cursor)
	}
	res, err := s.client.client().Do(req)
	if err != nil {
		return s.disconnectError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	if media := res.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/event-stream") {
		return fmt.Errorf("%w: %s responded with %q, not a stream", ErrProtocol, req.URL.Redacted(), media)
	}
	var r sse.Reader
	buf := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buf)
		watch.Reset(silence)
		if n > 0 {
			if err := r.Feed(buf[:n], s.frame); err != nil {
				return err
			}
		}
		if err != nil {
			return s.disconnectError(ctx, err)
		}
	}
}

// disconnectError wraps the reason why a connection ended.
func (s *stream) disconnectError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the gateway closed the stream")
	}
	return fmt.Errorf("leat: connection lost: %w", err)
}

// frame decodes a frame and passes it to the callback. The cursor advances only after the callback has accepted the frame, so the
// next connection delivers a frame again that the callback has not seen completely.
func (s *stream) frame(e sse.Event) error {
	f := &Frame{Raw: e.Data}
	if err := json.Unmarshal(e.Data, f); err != nil {
		return fmt.Errorf("%w: frame: %w", ErrProtocol, err)
	}
	switch f.Type {
	case "hello":
		if f.Protocol != protocol {
			return fmt.Errorf("%w: its protocol is %q, not %q", ErrProtocol, f.Protocol, protocol)
		}
		s.greeted = true
	case "error":
		return &Error{Message: f.Error, Reason: f.Reason, RetryAfter: min(time.Duration(max(f.RetryAfter, 0)), maxRetryAfter*1000) * time.Millisecond}
	case "snapshot":
		if f.Transcript == nil {
			return fmt.Errorf("%w: a snapshot without a transcript", ErrProtocol)
		}
		f.Transcript.Earlier = f.Earlier
	}
	if err := s.fn(f); err != nil {
		return &ownError{err}
	}
	if f.Cursor != "" {
		s.cursor = f.Cursor
		s.resyncs = s.resyncs && f.Type != "batch"
		if !s.resyncs {
			// Not after a hello, because a connection that breaks in each snapshot would then be retried without growing waits.
			s.wait.reset()
		}
	}
	return nil
}
