package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/internal/service/capture"
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

// WriteRecording writes what is kept of the bytes of a turn as a recording, which can be replayed. It has written nothing where it
// returns ErrNotFound, ErrForbidden or ErrNotKept.
func (g *Gateway) WriteRecording(ctx context.Context, p Principal, turn string, w io.Writer) error {
	if _, _, err := g.Turn(ctx, p, ActionInspect, turn); err != nil {
		return err
	}
	out := recordings.NewWriter(w, "turn")
	var head recordings.Head
	body, at := false, int64(0)
	err := g.cfg.Raw.Read(ctx, turn, func(e capture.Entry) error {
		at = e.At
		switch e.Kind {
		case capture.Begin:
			head = recordings.Head{Turn: e.Meta.Turn, Conversation: e.Meta.Conversation, Agent: e.Meta.Agent, Kind: e.Meta.Kind}
			if _, err := g.cfg.Dialects.Lookup(e.Meta.Kind); err == nil {
				head.Dialect = e.Meta.Kind
			}
			body = false
			return out.Open(e.At, head)
		case capture.Speaks, capture.Messages:
			head.Dialect, body = string(e.Data), e.Kind == capture.Speaks
			return out.Open(e.At, head)
		case capture.Lost:
			return out.Lost(e.At, e.N)
		case capture.Sent, capture.Received:
			if sent := e.Kind == capture.Sent; sent || !body {
				return out.Message(e.At, sent, e.Data)
			}
			return out.Piece(e.At, false, e.Data)
		}
		return nil // the agent may have been called again after its end
	})
	if errors.Is(err, capture.ErrNotKept) {
		return ErrNotKept
	}
	return cmp.Or(err, out.Close(at))
}
