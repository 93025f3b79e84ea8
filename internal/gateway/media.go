package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/leat-dev/leat/event"
)

// storeMedia stores the media of operations. Media that can't be stored are shown without their file, as a failed part that says why.
func storeMedia(ctx context.Context, ops []event.Event, store MediaStore) ([]event.Event, error) {
	brings := func(e event.Event) bool { return e.Body != nil && store.Brings(e.Body.Media) }
	if !slices.ContainsFunc(ops, brings) {
		return ops, nil
	}
	var out []event.Event
	for _, op := range ops {
		if !brings(op) {
			out = append(out, op)
			continue
		}
		media, err := store.Store(ctx, *op.Body.Media)
		var refused *Rejection
		switch {
		case err == nil:
			out = append(out, withMedia(op, media))
		case errors.As(err, &refused):
			out = append(out, withMedia(op, media), withoutFile(op, refused))
		default:
			return nil, err
		}
	}
	return out, nil
}

// withMedia returns a copy of an operation that shows other media.
func withMedia(op event.Event, m event.Media) event.Event {
	b := *op.Body
	b.Media, op.Body = &m, &b
	return op
}

// withoutFile returns the operation that follows one whose file is missing: its part has failed.
func withoutFile(op event.Event, why *Rejection) event.Event {
	op.Type = event.PartUpdate
	op.Body = &event.Body{State: event.PartFailed, Error: &event.Error{Code: why.Reason, Message: why.Message}}
	return op
}

// bareOps returns operations that were held back until the end of the turn, when no file can be stored any more. Media that name a path
// are shown without it, as failed parts.
func bareOps(ops []event.Event, files TurnFiles) []event.Event {
	var out []event.Event
	for _, op := range ops {
		if op.Body == nil || op.Body.Media == nil {
			out = append(out, op)
			continue
		}
		bare, named := files.Bare(*op.Body.Media)
		if !named {
			out = append(out, op)
			continue
		}
		out = append(out, withMedia(op, bare), withoutFile(op, reject(ReasonFile, "the turn ended before the file was stored")))
	}
	return out
}
