// The request of a delivery, with its signature, and what an answer means.

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/base/signature"
)

// IDHeader is the request header with the delivery's id. Receivers use it to detect repeated deliveries.
const IDHeader = "Leat-Webhook-Id"

// tryLimit limits one attempt, from the connection to the end of the answer.
const tryLimit = 10 * time.Second

// doer sends a request. *http.Client implements it.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// answer is the result of an attempt.
type answer struct {
	// status is the HTTP status, or 0 without an answer. err is the reason then.
	status int
	err    error
	// after is the wait that the receiver requested with Retry-After.
	after time.Duration
	// maybeSent means that a connection was made, so the receiver may have processed the request without an answer.
	maybeSent bool
}

// ok reports whether the receiver accepted the delivery.
func (a answer) ok() bool { return a.status/100 == 2 }

// isOutage reports whether the failure concerns the receiver as a whole, not just this delivery.
func (a answer) isOutage() bool {
	switch a.status {
	case 0:
		return !a.maybeSent
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// String describes the result for logs. It contains nothing from the receiver except the status.
func (a answer) String() string {
	if a.status == 0 {
		return a.err.Error()
	}
	return fmt.Sprintf("the receiver answered %d", a.status)
}

// send makes one attempt. The error means that no request could be built; failures of the request are in the answer.
func send(ctx context.Context, c doer, h *Hook, b *Body) (answer, error) {
	payload, err := json.Marshal(b)
	if err != nil {
		return answer{}, fmt.Errorf("encode: %w", err)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(payload))
	if err != nil {
		return answer{}, outbound.Reason(err)
	}
	signedAt := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Leat")
	req.Header.Set(IDHeader, b.ID)
	req.Header.Set(signature.Header, signature.Sign(h.Secret, signedAt, payload))
	resp, err := c.Do(req)
	if err != nil {
		return answer{err: outbound.Reason(err), maybeSent: connected.Load()}, nil
	}
	defer resp.Body.Close()
	// The body is ignored, but it is read so that the connection can be reused.
	_, _ = io.Copy(io.Discard, resp.Body)
	return answer{status: resp.StatusCode, after: retry.After(resp.Header.Get("Retry-After"), signedAt)}, nil
}
