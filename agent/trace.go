package agent

import "context"

type traceParentKey struct{}

// WithTraceParent returns a context with a W3C traceparent. Calls upstream with that context continue the trace.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceParentKey{}, traceparent)
}

// TraceParent returns the value of the header Traceparent for calls upstream, or "" if the context has none.
func TraceParent(ctx context.Context) string {
	s, _ := ctx.Value(traceParentKey{}).(string)
	return s
}
