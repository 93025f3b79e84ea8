package streams

import (
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/gateway"
)

// ErrGone says that a stream was deleted while it had forks, that it has expired under a legal hold, or that an offset is one of a stream that no longer
// exists. Other refusals are a [gateway.Rejection], or [gateway.ErrNotFound].
var ErrGone = errors.New("streams: gone")

// errReplaced says that the stored state may differ from the one in memory, which is therefore read again.
var errReplaced = errors.New("streams: state replaced")

// invalid refuses a request that can never succeed.
func invalid(format string, args ...any) error {
	return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: fmt.Sprintf(format, args...)}
}

// conflict refuses a request that contradicts what is stored.
func conflict(format string, args ...any) error {
	return &gateway.Rejection{Reason: gateway.ReasonConflict, Message: fmt.Sprintf(format, args...)}
}

// full refuses a request that would exceed a limit of the store.
func full(format string, args ...any) error {
	return &gateway.Rejection{Reason: gateway.ReasonFull, Message: fmt.Sprintf(format, args...)}
}
