package gateway

import (
	"context"

	"github.com/leat-dev/leat/agent"
)

var (
	_ agent.RawSink  = (*sink)(nil)
	_ agent.BodySink = (*sink)(nil)
)

// Raw implements [agent.RawSink].
func (s *sink) Raw(isSent bool, data []byte) { s.capture.Raw(isSent, data) }

// Body implements [agent.BodySink].
func (s *sink) Body(name string) { s.capture.SetDialect(name, true) }

// Messages implements [agent.BodySink].
func (s *sink) Messages(name string) { s.capture.SetDialect(name, false) }

// forgetRaw drops the bytes of the conversation's turns: those that were sent hold what stood in it.
func (w *writer) forgetRaw(ctx context.Context) {
	captures := w.core.cfg.Raw
	if err := captures.Forget(context.WithoutCancel(ctx), w.id); err != nil {
		w.log.Error("bytes of turns not forgotten; they go when they are too old", "error", err)
	}
}
