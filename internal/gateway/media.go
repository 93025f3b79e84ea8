// Files in the output of agents: bytes are stored before the operation that names them is committed, and the operation then has a
// URL instead of the bytes.

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
	var result []event.Event
	for _, op := range ops {
		if !brings(op) {
			result = append(result, op)
			continue
		}
		media, err := store.Store(ctx, *op.Body.Media)
		var rejection *Rejection
		switch {
		case err == nil:
			result = append(result, withMedia(op, media))
		// A refused file fails its part, not the turn: the text around it is still worth reading.
		case errors.As(err, &rejection):
			result = append(result, withMedia(op, media), withoutFile(op, rejection))
		default:
			return nil, err
		}
	}
	return result, nil
}

// withMedia returns a copy of an operation with other media.
func withMedia(op event.Event, m event.Media) event.Event {
	b := *op.Body
	b.Media, op.Body = &m, &b
	return op
}

// withoutFile returns the operation that marks the part of another operation as failed, because its file is missing.
func withoutFile(op event.Event, rejection *Rejection) event.Event {
	op.Type = event.PartUpdate
	op.Body = &event.Body{State: event.PartFailed, Error: &event.Error{Code: rejection.Reason, Message: rejection.Message}}
	return op
}

// bareOps returns operations that were buffered until the end of the turn, when files can't be stored any more. Media that name
// a path of the workspace are shown without the path, as failed parts.
func bareOps(ops []event.Event, files TurnFiles) []event.Event {
	var result []event.Event
	for _, op := range ops {
		if op.Body == nil || op.Body.Media == nil {
			result = append(result, op)
			continue
		}
		bare, hasPath := files.Bare(*op.Body.Media)
		if !hasPath {
			result = append(result, op)
			continue
		}
		result = append(result, withMedia(op, bare), withoutFile(op, reject(ReasonFile, "the turn ended before the file was stored")))
	}
	return result
}
