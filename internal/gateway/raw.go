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

// forgetRaw deletes the captured bytes of the conversation's turns, because requests to agents contain the removed messages.
func (w *writer) forgetRaw(ctx context.Context) {
	captures := w.core.cfg.Raw
	if err := captures.Forget(context.WithoutCancel(ctx), w.id); err != nil {
		w.log.Error("captured bytes of turns not deleted; they are deleted when they expire", "error", err)
	}
}
