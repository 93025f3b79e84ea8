package tracing

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leat-dev/leat/internal/gateway"
)

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
