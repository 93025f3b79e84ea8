package http

import (
	"context"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/agent/internal/call"
)

// Check implements [agent.Checker]. It sends HEAD and accepts any response: the address need not support that method, and a POST would
// start a turn.
func (a *Agent) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, a.url.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "Leat")
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s doesn't respond: %s", a.url.Host, call.Reason(err))
	}
	return res.Body.Close()
}
