package inspection

import (
	"cmp"
	"context"
	"errors"
	"io"

	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
)

// WriteRecording writes the captured bytes of a turn as a recording, which can be replayed. If it returns [gateway.ErrNotFound],
// [gateway.ErrForbidden] or [gateway.ErrNotKept], it has written nothing.
func (in *Inspector) WriteRecording(ctx context.Context, p gateway.Principal, turn string, w io.Writer) error {
	if _, _, err := in.gateway.Turn(ctx, p, gateway.ActionInspect, turn); err != nil {
		return err
	}
	return in.writeRecording(ctx, turn, w)
}

// writeRecording converts the capture of a turn to a recording. The capture names the dialect of each response; for an agent
// without a response body the kind is the dialect, if there is one of that name. A body is written in pieces as it arrived, and
// messages one by one. Bytes that the capture has lost become a gap.
func (in *Inspector) writeRecording(ctx context.Context, turn string, w io.Writer) error {
	recording := recordings.Writer{Output: w, Client: "turn"}
	var head recordings.Head
	body, at := false, int64(0)
	err := in.captures.Read(ctx, turn, func(e capture.Entry) error {
		at = e.At
		switch e.Kind {
		case capture.KindBegin:
			head = recordings.Head{Turn: e.Meta.Turn, Conversation: e.Meta.Conversation, Agent: e.Meta.Agent, Kind: e.Meta.Kind}
			if _, err := in.dialects.Lookup(e.Meta.Kind); err == nil {
				head.Dialect = e.Meta.Kind
			}
			body = false
			return recording.Open(e.At, head)
		case capture.KindStream, capture.KindMessages:
			head.Dialect, body = string(e.Data), e.Kind == capture.KindStream
			return recording.Open(e.At, head)
		case capture.KindLost:
			return recording.Gap(e.At, e.N)
		case capture.KindSent, capture.KindReceived:
			if isSent := e.Kind == capture.KindSent; isSent || !body {
				return recording.Message(e.At, isSent, e.Data)
			}
			return recording.Piece(e.At, false, e.Data)
		}
		return nil // the agent may have been called again after its end
	})
	if errors.Is(err, capture.ErrNotKept) {
		return gateway.ErrNotKept
	}
	return cmp.Or(err, recording.Close(at))
}
