package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
)

const (
	// maxCommits is the number of commits of a turn that become spans, and the number of further slow commits that do.
	maxCommits = 16
	// slowCommit is the duration from which on a commit counts as slow.
	slowCommit = 100 * time.Millisecond
	// traceparent is the name of the header in W3C Trace Context.
	traceparent = "traceparent"
)

// Tracer creates the spans of a gateway's turns. Its methods may be called from several goroutines.
type Tracer struct{ tracer trace.Tracer }

var _ gateway.Tracer = (*Tracer)(nil)

// New returns a tracer that creates its spans with a provider.
func New(p trace.TracerProvider) *Tracer {
	return &Tracer{p.Tracer("github.com/leat-dev/leat/otel")}
}

var w3c = propagation.TraceContext{}

// Turn implements [gateway.Tracer].
func (t *Tracer) Turn(ctx context.Context, info gateway.TurnInfo) (context.Context, gateway.TurnTrace) {
	began := time.Now()
	if info.Parent != "" {
		ctx = w3c.Extract(ctx, propagation.MapCarrier{traceparent: info.Parent})
	}
	ctx, root := t.tracer.Start(ctx, "leat.turn", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("leat.conversation", info.Conversation),
		attribute.String("leat.turn", info.Turn),
		attribute.String("leat.agent", info.Agent),
		attribute.String("leat.agent.kind", info.Kind),
		attribute.Bool("leat.resumed", info.IsResumed),
	))
	up, upstream := t.tracer.Start(ctx, "leat.upstream", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient))
	carrier := propagation.MapCarrier{}
	w3c.Inject(up, carrier)
	return agent.WithTraceParent(up, carrier[traceparent]), &turn{tracer: t.tracer, ctx: ctx, root: root, upstream: upstream, began: began}
}

// turn creates the spans of one turn. Its methods are called by one goroutine at a time.
type turn struct {
	tracer         trace.Tracer
	ctx            context.Context // of the root
	root, upstream trace.Span
	began          time.Time

	commits, events, slow int
	longest               time.Duration
	asked                 time.Time // of the last commit
}

// Commit implements [gateway.TurnTrace].
func (t *turn) Commit(events int, asked, durable, shown time.Time) {
	t.commits++
	t.events += events
	t.asked = asked
	took := shown.Sub(asked)
	t.longest = max(t.longest, took)
	if t.commits > maxCommits {
		if took < slowCommit || t.slow >= maxCommits {
			return
		}
		t.slow++
	}
	_, s := t.tracer.Start(t.ctx, "leat.commit", trace.WithTimestamp(asked), trace.WithAttributes(attribute.Int("leat.events", events)))
	s.AddEvent("durable", trace.WithTimestamp(durable))
	s.End(trace.WithTimestamp(shown))
}

// FirstText implements [gateway.TurnTrace].
func (t *turn) FirstText(shown time.Time) {
	_, s := t.tracer.Start(t.ctx, "leat.first_text", trace.WithTimestamp(t.began))
	s.End(trace.WithTimestamp(shown))
}

// End implements [gateway.TurnTrace].
func (t *turn) End(body *event.Body, err error) {
	t.root.SetAttributes(
		attribute.Int("leat.commits", t.commits),
		attribute.Int("leat.events", t.events),
		attribute.Float64("leat.commit.longest_seconds", t.longest.Seconds()),
	)
	switch {
	case body != nil:
		t.outcome(body)
	case err != nil:
		// The turn may be resumed, with a separate span.
		t.root.SetAttributes(attribute.String("leat.left", "the turn goes on elsewhere or later"))
	}
	// The agent had finished when the end was passed to the journal.
	if t.asked.IsZero() {
		t.upstream.End()
	} else {
		t.upstream.End(trace.WithTimestamp(t.asked))
	}
	t.root.End()
}

func (t *turn) outcome(b *event.Body) {
	t.root.SetAttributes(attribute.String("leat.outcome", string(b.Outcome)))
	if e := b.Error; e != nil {
		t.root.SetAttributes(attribute.String("error.type", e.Code), attribute.Bool("leat.retryable", e.Retryable))
	}
	if b.Outcome == event.Failed || b.Outcome == event.Interrupted {
		t.root.SetStatus(codes.Error, string(b.Outcome)) // the error's text may quote the conversation
	}
	if u := b.Usage; u != nil {
		if u.Model != "" {
			t.root.SetAttributes(attribute.String("gen_ai.response.model", u.Model))
		}
		t.root.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.Input), attribute.Int64("gen_ai.usage.output_tokens", u.Output))
	}
}

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

// Setup makes a tracer that sends its spans by OTLP over HTTP, as OpenTelemetry's own environment variables say
// (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME …), and what sends the
// last of them. A collector that is not there is logged, and stops nothing.
func Setup(ctx context.Context, version string, log *slog.Logger) (gateway.Tracer, func(context.Context) error, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: exporter: %w", err)
	}
	// Attributes from the environment come last and override the others.
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "leat"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: resource: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("tracing", "error", err) }))
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(res))
	return New(p), p.Shutdown, nil
}
