package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leat-dev/leat/internal/channel"
)

var _ channel.StreamDelegate = (*Tracer)(nil)

// OnStreamBegin implements [channel.StreamDelegate]. A delivery is a separate trace: it may begin long after its turn, and in another
// process. The attribute leat.turn connects the two.
func (t *Tracer) OnStreamBegin(ctx context.Context, h channel.StreamHints) context.Context {
	ctx, _ = t.tracer.Start(ctx, "leat.delivery", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("leat.channel", h.Channel),
		attribute.String("leat.conversation", h.Conversation),
		attribute.String("leat.turn", h.Turn),
	))
	return ctx
}

// OnStreamEnd implements [channel.StreamDelegate].
func (t *Tracer) OnStreamEnd(ctx context.Context, _ channel.StreamHints, err error) {
	span := trace.SpanFromContext(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
