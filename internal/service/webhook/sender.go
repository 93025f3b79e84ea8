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

// IDHeader is the name of the header that carries a delivery's id.
const IDHeader = "Leat-Webhook-Id"

// tryLimit bounds one try, from its connection to the end of its answer.
const tryLimit = 10 * time.Second

// doer is what sends a request.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// answer is what became of a try.
type answer struct {
	// status is 0 where there was no answer; err says why.
	status int
	err    error
	// after is what the receiver asked to wait for.
	after time.Duration
	// sent says that the receiver may have got the request, though there was no answer.
	maybeSent bool
}

func (a answer) ok() bool { return a.status/100 == 2 }

// away reports whether the failure says something of the receiver as a whole, rather than of this delivery.
func (a answer) isOutage() bool {
	switch a.status {
	case 0:
		return !a.maybeSent
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// String says what happened; nothing in it is from the receiver but the status.
func (a answer) String() string {
	if a.status == 0 {
		return a.err.Error()
	}
	return fmt.Sprintf("it answered %d", a.status)
}

// send tries to deliver once.
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
	// What it says does not matter; a short answer is read so that its connection can be used again.
	_, _ = io.Copy(io.Discard, resp.Body)
	return answer{status: resp.StatusCode, after: retry.After(resp.Header.Get("Retry-After"), signedAt)}, nil
}
