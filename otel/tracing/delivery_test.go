package tracing_test

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/otel/tracing"
)

// A delivery is one span, which has the error of a failed one.
func TestDelivery(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	h := channel.StreamHints{Channel: "telegram", ChatID: "7", Conversation: "c", Turn: "t"}
	tracer.OnStreamEnd(tracer.OnStreamBegin(t.Context(), h), h, nil)
	tracer.OnStreamEnd(tracer.OnStreamBegin(t.Context(), h), h, errors.New("blocked"))
	spans := recorder.Ended()
	if len(spans) != 2 || spans[0].Name() != "leat.delivery" || spans[0].Status().Code == codes.Error || spans[1].Status().Description != "blocked" {
		t.Errorf("%+v", spans)
	}
	for _, a := range spans[0].Attributes() {
		if a.Value.AsString() == "7" {
			t.Error("the span has the id of a person")
		}
	}
}
