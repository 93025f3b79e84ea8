package http

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// cut describes a body that ended without the dialect's own end. asked says that it held a question.
func (a *Agent) cutMessage(res *http.Response, s *agent.Stream, hasRequest bool) string {
	if hasRequest {
		return "the agent asked a question and ended its answer; to get a person's decision it has to keep the answer open, or answer 202 and push the turn"
	}
	text := fmt.Sprintf("the agent's answer ended without the end that %s has", a.cfg.Dialect.Name)
	if kind := res.Header.Get("Content-Type"); !s.HasBegun() && kind != "" {
		text = fmt.Sprintf("the agent's answer (%d, %s) holds nothing in the dialect %s", res.StatusCode, kind, a.cfg.Dialect.Name)
	}
	return text
}

// undecodable adds to a decoder's error what may have led to it.
func (a *Agent) undecodable(res *http.Response, err error) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	sse := kind == "text/event-stream"
	var bad *dialect.Error
	if errors.As(err, &bad) && sse && a.cfg.Dialect.Framing == dialect.Lines {
		return fmt.Errorf("%w; the answer is %s, and the dialect has lines of JSON", err, kind)
	}
	return err
}
