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
	Type         string `json:"type"` // hello, snapshot, batch, error, or one that is to come
	Conversation string `json:"conversation"`
	// Cursor is where a reader stands who has applied the frame; of snapshots and batches only.
	Cursor string `json:"cursor"`

	Protocol string            `json:"protocol"` // hello
	Turns    []transcript.Turn `json:"turns"`    // hello: those that are unfinished

	Epoch        string               `json:"epoch"` // snapshot: of the log that Seq counts in
	Reset        bool                 `json:"reset"`
	FirstMessage string               `json:"first"`
	Earlier      bool                 `json:"earlier"`
	Transcript   *transcript.Snapshot `json:"transcript"`

	Seq    int64         `json:"seq"` // batch: of its cursor
	Events []event.Event `json:"events"`

	Error      string `json:"error"`
	Reason     string `json:"reason"`
	RetryAfter int64  `json:"retryAfter"` // milliseconds

	// Raw is the frame as it came, valid until the function that got it returns.
	Raw []byte `json:"-"`
}

// protocol is the one that this client was written for.
const protocol = "leat/1"

// silence is how long a connection may be silent: the gateway says something at least every 15 s.
const silence = 45 * time.Second

// StreamOptions say where a stream begins, and who is told of its interruptions.
type StreamOptions struct {
	// Cursor is where to begin; empty begins with a snapshot.
	Cursor string
	// Lost is called, where it is set, each time a connection is lost or can't be made, with the time until the next try.
	OnDisconnect func(err error, next time.Duration)
	// Hurry, where it is set, ends a wait when something comes from it: for programs that are told when the network is back.
	Hurry <-chan struct{}
}

// Stream reads a conversation's frames: the hello of each connection, snapshots and batches. It connects again by itself
// and goes on at the cursor of the last frame that fn took. It returns nil where fn returns ErrStop, the context's cause, what else fn
// returns, or an error of the gateway that no repeat mends: the conversation is gone, the token is wrong. Where the
// client's TokenSource gives another token when one runs out, it goes on with that.
func (c *Client) Stream(ctx context.Context, id string, o StreamOptions, fn func(*Frame) error) error {
	s := &stream{c: c, id: id, cursor: o.Cursor, fn: fn}
	for {
		began := time.Now()
		err := s.connect(ctx)
		if s.greeted && time.Since(began) >= lasting {
			s.wait.reset()
		}
		var callbackErr *ownError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &callbackErr) && errors.Is(callbackErr.error, errResync):
			// Again from a snapshot. It counts as a failure, so that a gateway whose frames never fit is not asked in a loop.
			s.cursor, s.resyncs = "", true
		case errors.As(err, &callbackErr) && errors.Is(callbackErr.error, ErrStop):
			return nil
		case errors.As(err, &callbackErr):
			return callbackErr.error
		case s.c.renews(err) && !s.renewed:
			s.renewed = true
		case !temporary(err):
			return err
		}
		d := s.wait.after(err)
		if errors.Is(err, errSilence) {
			d = 0 // the wait is behind it
		}
		if o.OnDisconnect != nil {
			o.OnDisconnect(err, d)
		}
		if err := sleep(ctx, d, o.Hurry); err != nil {
			return err
		}
	}
}

// errResync is returned by a function that can't apply a frame: it gets a snapshot next.
var errResync = errors.New("leat: resync")

// errSilence says that a connection's heartbeats were missing.
var errSilence = fmt.Errorf("nothing came for %v", silence)

// ownError is an error of the caller's function.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

type stream struct {
	c      *Client
	id     string
	cursor string
	fn     func(*Frame) error
	wait   backoff
	// renewed says that a token was refused, and none was taken since.
	renewed bool
	// greeted says that the connection at hand was answered by a gateway that takes the token.
	greeted bool
	// resyncs says that the last frames did not fit, and none has fitted since.
	resyncs bool
}

// connect reads one connection to its end. It never returns nil.
func (s *stream) connect(ctx context.Context) error {
	s.greeted = false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilence) })
	defer watch.Stop()

	req, err := s.c.request(ctx, http.MethodGet, conversation(s.id, "/events"), nil)
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
	res, err := s.c.client().Do(req)
	if err != nil {
		return s.disconnectError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	if media := res.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/event-stream") {
		return fmt.Errorf("%w: %s answers %q, not a stream", ErrProtocol, req.URL.Redacted(), media)
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

// cut says why a connection ended.
func (s *stream) disconnectError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the gateway closed the stream")
	}
	return fmt.Errorf("leat: connection lost: %w", err)
}

func (s *stream) frame(e sse.Event) error {
	f := &Frame{Raw: e.Data}
	if err := json.Unmarshal(e.Data, f); err != nil {
		return fmt.Errorf("%w: frame: %w", ErrProtocol, err)
	}
	switch f.Type {
	case "hello":
		if f.Protocol != protocol {
			return fmt.Errorf("%w: it speaks %q, not %q", ErrProtocol, f.Protocol, protocol)
		}
		s.renewed, s.greeted = false, true
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
			// A hello is not enough: a connection that breaks in each snapshot would be made again in a loop.
			s.wait.reset()
		}
	}
	return nil
}
