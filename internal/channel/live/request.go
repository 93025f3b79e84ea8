package live

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/leat-dev/leat/internal/base/outbound"
)

// RequestError returns the error of an HTTP request without an answer as [Chat] describes it: until a connection is made, nothing was
// sent. The error doesn't contain the address, in which some platforms have secrets.
func RequestError(ctx context.Context, err error) error {
	outcome := ErrUnknown
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		outcome = ErrUnsent
	}
	if ctx.Err() != nil && outcome == ErrUnsent {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", outcome, outbound.Reason(err))
}
