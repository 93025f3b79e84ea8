package http

import (
	"context"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/agent/internal/call"
)

// Check implements [agent.Checker]: something answers HTTP there. It asks for nothing, so any answer will do.
func (a *Agent) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, a.url.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "Leat")
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %s", a.url.Host, call.Reason(err))
	}
	return res.Body.Close()
}
