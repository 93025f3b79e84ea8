package gateway

import (
	"bytes"
	"context"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

var (
	_ agent.RawSink  = (*sink)(nil)
	_ agent.BodySink = (*sink)(nil)
)

// Raw implements [agent.RawSink].
func (s *sink) Raw(sent bool, data []byte) { s.capture.Raw(sent, data) }

// Body implements [agent.BodySink].
func (s *sink) Body(name string) { s.capture.Speaks(name, true) }

// Messages implements [agent.BodySink].
func (s *sink) Messages(name string) { s.capture.Speaks(name, false) }

// keeps notes what a producer brings, once it is known how much of it was decoded: half a frame is brought again after a cut,
// and is not to be there twice. What can't be decoded is noted as it is.
func (r *run) keeps(s *dialect.Stream, b []byte) func(decoded int64, err error) {
	if r.capture == nil {
		return func(int64, error) {}
	}
	if !bytes.ContainsAny(b, "\r\n") {
		// No frame ends here, so that nothing is copied for each piece of a long line. One that is refused is noted from here on.
		return func(_ int64, err error) {
			if err != nil {
				r.out.Received(b)
			}
		}
	}
	pending := s.Pending()
	return func(decoded int64, err error) {
		all := append(pending, b...)
		if err == nil {
			all = all[:decoded]
		}
		r.out.Received(all)
	}
}

// forgetRaw drops the bytes of the conversation's turns: those that were sent hold what stood in it.
func (w *writer) forgetRaw(ctx context.Context) {
	if err := w.g.cfg.Raw.Forget(context.WithoutCancel(ctx), w.id); err != nil {
		w.log.Error("bytes of turns not forgotten; they go when they are too old", "error", err)
	}
}
