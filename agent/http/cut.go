package http

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// cutMessage describes a body that ended before the end of the turn that its dialect requires. hasRequest means
// that the body has a request to the user, which a program often sends before it ends its response by mistake.
// A body without any operation is probably in another format, so the message names its type instead.
func (a *Agent) cutMessage(res *http.Response, s *agent.Stream, hasRequest bool) string {
	if hasRequest {
		return "the agent asked the user and ended its response; to get the answer it must keep the response open, or respond 202 and push the turn"
	}
	if kind := res.Header.Get("Content-Type"); !s.HasBegun() && kind != "" {
		return fmt.Sprintf("the agent's response (%d, %s) contains nothing in the dialect %s", res.StatusCode, kind, a.cfg.Dialect.Name)
	}
	return fmt.Sprintf("the agent's answer ended before the end of the turn that %s requires", a.cfg.Dialect.Name)
}

// undecodable adds the likely cause to a decoder's error: server-sent events in a response that should have lines of JSON.
func (a *Agent) undecodable(res *http.Response, err error) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	_, isInvalid := errors.AsType[*dialect.Error](err)
	if isInvalid && kind == "text/event-stream" && a.cfg.Dialect.Framing == dialect.Lines {
		return fmt.Errorf("%w; the response is %s, but the dialect has lines of JSON", err, kind)
	}
	return err
}
