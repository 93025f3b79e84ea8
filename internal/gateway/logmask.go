package gateway

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leat-dev/leat/internal/service/capture"
)

// masking is a log handler that masks secrets in what an agent logs about a turn, such as the output of programs and addresses.
type masking struct {
	slog.Handler
	secrets []string
}

// Handle implements [slog.Handler].
func (m masking) Handle(ctx context.Context, r slog.Record) error {
	masked := slog.NewRecord(r.Time, r.Level, capture.Mask(m.secrets, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(m.attr(a))
		return true
	})
	return m.Handler.Handle(ctx, masked)
}

// WithAttrs implements [slog.Handler].
func (m masking) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = m.attr(a)
	}
	return masking{m.Handler.WithAttrs(masked), m.secrets}
}

// WithGroup implements [slog.Handler].
func (m masking) WithGroup(name string) slog.Handler {
	return masking{m.Handler.WithGroup(name), m.secrets}
}

// attr masks an attribute that is text, or that is logged as text.
func (m masking) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, capture.Mask(m.secrets, v.String()))
	case slog.KindGroup:
		group := make([]any, 0, len(v.Group()))
		for _, member := range v.Group() {
			group = append(group, m.attr(member))
		}
		return slog.Group(a.Key, group...)
	case slog.KindAny:
		return slog.String(a.Key, capture.Mask(m.secrets, fmt.Sprint(v.Any())))
	}
	return a
}
