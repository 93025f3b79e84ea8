// From a request to its method and its response.

package openclaw

import (
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// method carries out a request and returns the payload of its response.
type method func(c *connection, rq *request) (any, error)

// responded is the payload of a method that has written its response itself. Its error ends the connection.
type responded struct{ err error }

// methods are the methods that Leat has. Clients leave out what isn't listed here.
var methods = map[string]method{
	"agent.identity.get":            on((*connection).agentIdentity),
	"agents.list":                   on((*connection).listAgents),
	"chat.abort":                    on((*connection).abort),
	"chat.history":                  onRequest((*connection).history),
	"chat.send":                     onRequest((*connection).sendMessage),
	"chat.startup":                  onRequest((*connection).history),
	"health":                        on((*connection).health),
	"models.list":                   on((*connection).listModels),
	"plugin.approval.list":          on((*connection).listApprovals),
	"plugin.approval.resolve":       on((*connection).resolveApproval),
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
	"sessions.reset":                on((*connection).resetSession),
	"sessions.resolve":              on((*connection).resolveSession),
	"sessions.subscribe":            on((*connection).subscribeSessions),
	"sessions.unsubscribe":          on((*connection).unsubscribeSessions),
}

// on returns a method with decoded parameters.
func on[P any](fn func(*connection, *P) (any, error)) method {
	return onRequest(func(c *connection, _ *request, p *P) (any, error) { return fn(c, p) })
}

// onRequest returns a method with decoded parameters that also gets the request, to write the response itself. Unknown parameters are ignored,
// because other versions have others.
func onRequest[P any](fn func(*connection, *request, *P) (any, error)) method {
	return func(c *connection, rq *request) (any, error) {
		var p P
		if len(rq.Params) > 0 {
			if err := json.Unmarshal(rq.Params, &p); err != nil {
				return nil, server.Invalid("invalid %s params: %v", rq.Method, err)
			}
		}
		return fn(c, rq, &p)
	}
}

// handle carries out a request and writes its response. Its error ends the connection.
func (c *connection) handle(rq *request) error {
	fn, ok := methods[rq.Method]
	if !ok {
		return c.write(response{Type: "res", ID: rq.ID, Error: &fault{Code: codeInvalid, Message: "unknown method: " + rq.Method}})
	}
	payload, err := fn(c, rq)
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
