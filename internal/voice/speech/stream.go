package speech

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// stallLimit is how long an engine may send nothing while a reader waits. Good services send the first audio in less than a second, slow
// local models in a few seconds.
const stallLimit = 15 * time.Second

var (
	// errStalled is the cause of a context that ended because nothing arrived.
	errStalled = errors.New("no audio arrived in time")
	// errClosed is what reads return after Close.
	errClosed = errors.New("speech: reader is closed")
)

// source is the raw answer of an engine. Its context ends when the answer is closed, stalls, or is no longer wanted; then body must
// end too.
type source struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	// stall limits the time of a read. The time between reads isn't limited, since a listener may be slow.
	stall time.Duration
}

// Read implements [io.Reader]. If the context ends first, the error is its cause.
func (s *source) Read(p []byte) (int, error) {
	timer := time.AfterFunc(s.stall, func() { s.cancel(errStalled) })
	n, err := s.body.Read(p)
	timer.Stop()
	if err != nil && err != io.EOF {
		if cause := context.Cause(s.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

// stream is the speech of one utterance.
type stream struct {
	engine string
	src    *source
	// audio decodes src.
	audio io.Reader
	// close makes Close idempotent.
	close sync.Once
}

var _ io.ReadCloser = (*stream)(nil)

// newStream returns the audio of a source. contentType is that of the response, if there is one.
func newStream(engine string, src *source, contentType string) *stream {
	return &stream{engine: engine, src: src, audio: &decoder{src: src, contentType: contentType}}
}

// Read implements [io.Reader]. Close may be called at the same time, and ends a pending read.
func (s *stream) Read(p []byte) (int, error) {
	if err := context.Cause(s.src.ctx); err != nil {
		return 0, s.fail(err)
	}
	n, err := s.audio.Read(p)
	if err != nil && err != io.EOF {
		err = s.fail(err)
	}
	return n, err
}

// fail returns a Failure, unless the caller itself ended the stream.
func (s *stream) fail(err error) error {
	if f, ok := errors.AsType[*voice.Failure](err); ok {
		return f
	}
	var bad *formatError
	switch cause := context.Cause(s.src.ctx); {
	case errors.Is(cause, errStalled):
		return &voice.Failure{Service: "speech", Engine: s.engine, Reason: voice.Unavailable, Err: cause}
	case cause != nil:
		return cause
	case errors.As(err, &bad):
		return &voice.Failure{Service: "speech", Engine: s.engine, Reason: voice.Format, Detail: bad.text}
	}
	return &voice.Failure{Service: "speech", Engine: s.engine, Reason: voice.Interrupted, Err: err}
}

// Close implements [io.Closer]. It returns when the request or process has ended.
func (s *stream) Close() error {
	s.close.Do(func() {
		s.src.cancel(errClosed)
		_ = s.src.body.Close() // the answer is dropped, so its error doesn't matter
	})
	return nil
}
