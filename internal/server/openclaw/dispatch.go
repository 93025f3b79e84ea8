// From a request to its method and its response.

package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// method carries out a request and returns the payload of its response.
type method func(c *connection, params json.RawMessage) (any, error)

// responded is the payload of a method that has written its response itself.
type responded struct{ err error }

// methods are the methods that Leat has. Clients leave out what isn't listed here. Those without a function write their response themselves.
var methods map[string]method

func init() {
	methods = map[string]method{
		"agent.identity.get":            on((*connection).agentIdentity),
		"agents.list":                   on((*connection).listAgents),
		"chat.abort":                    on((*connection).abort),
		"chat.history":                  nil,
		"chat.send":                     nil,
		"chat.startup":                  nil,
		"plugin.approval.list":          on((*connection).listApprovals),
		"plugin.approval.resolve":       on((*connection).resolveApproval),
		"health":                        on((*connection).health),
		"models.list":                   on((*connection).listModels),
		"question.get":                  on((*connection).getQuestion),
		"question.list":                 on((*connection).listQuestions),
		"question.resolve":              on((*connection).resolveQuestion),
		"sessions.create":               on((*connection).createSession),
		"sessions.delete":               on((*connection).deleteSession),
		"sessions.describe":             on((*connection).describeSession),
		"sessions.list":                 on((*connection).listSessions),
		"sessions.messages.subscribe":   on((*connection).subscribeMessages),
		"sessions.messages.unsubscribe": on((*connection).unsubscribeMessages),
		"sessions.patch":                on((*connection).patchSession),
		"sessions.resolve":              on((*connection).resolveSession),
		"sessions.reset":                on((*connection).resetSession),
		"sessions.subscribe":            on((*connection).subscribeSessions),
		"sessions.unsubscribe":          on((*connection).unsubscribeSessions),
	}
}

// on returns a method whose parameters are decoded. Unknown ones are ignored, because other versions have others.
func on[P any](fn func(*connection, *P) (any, error)) method {
	return func(c *connection, params json.RawMessage) (any, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, server.Invalid("invalid params: %v", err)
			}
		}
		return fn(c, &p)
	}
}

// handle carries out a request and writes its response. Its error ends the connection.
func (c *connection) handle(rq *request) error {
	var payload any
	var err error
	switch rq.Method {
	case "chat.startup", "chat.history":
		payload, err = c.history(rq)
	case "chat.send":
		payload, err = c.sendMessage(rq)
	default:
		fn, ok := methods[rq.Method]
		if !ok {
			return c.write(response{Type: "res", ID: rq.ID, Error: &fault{Code: codeInvalid, Message: "unknown method: " + rq.Method}})
		}
		payload, err = fn(c, rq.Params)
	}
	if r, ok := payload.(responded); ok && err == nil {
		return r.err
	}
	return c.respond(rq.ID, payload, err)
}

// respond writes the response to a request.
func (c *connection) respond(id string, payload any, err error) error {
	if err == nil {
		return c.write(response{Type: "res", ID: id, OK: true, Payload: payload})
	}
	if c.ctx.Err() != nil {
		return socket.ErrDisconnected
	}
	d := server.Describe(err)
	if d.Status == http.StatusInternalServerError {
		c.s.srv.Log().Error("openclaw request failed", "request", server.RequestID(c.ctx), "error", err)
	}
	return c.write(response{Type: "res", ID: id, Error: faultOf(d)})
}

// faultOf converts an error.
func faultOf(d *server.Error) *fault {
	f := &fault{Code: codeInvalid, Message: d.Message, RetryAfterMS: d.RetryAfter.Milliseconds()}
	if d.Reason != "" {
		f.Details = map[string]any{"reason": d.Reason}
	}
	if d.Status >= http.StatusInternalServerError || d.Status == http.StatusTooManyRequests {
		f.Code, f.Retryable = codeUnavailable, d.RetryAfter > 0
	}
	return f
}

// do carries out a command to its end, even if the client disconnects.
func (c *connection) do(conversation string, command gateway.Command) (gateway.Ack, error) {
	return server.Do(c.ctx, c.s.gw, c.principal(), conversation, command)
}

// commandContext returns a context for a change that must not be abandoned.
func (c *connection) commandContext() (context.Context, context.CancelFunc) {
	return server.CommandContext(c.ctx)
}

// unknownSession returns the error for a session that doesn't exist.
func unknownSession(key string) error {
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "%s", fmt.Sprintf("unknown session %q", key))
}
