package agent

import "context"

type traceParentKey struct{}

// WithTraceParent returns a context that carries a W3C traceparent: what is done under it continues that trace.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceParentKey{}, traceparent)
}

// TraceParent returns the traceparent that a call upstream should send along, as the header of that name; empty where
// there is none.
func TraceParent(ctx context.Context) string {
	s, _ := ctx.Value(traceParentKey{}).(string)
	return s
}
