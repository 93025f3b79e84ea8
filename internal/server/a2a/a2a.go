// The routes, and the methods by their names.

package a2a

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// source marks messages that came from A2A.
const source = "a2a"

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server. Each agent has a card and an address, and the default agent has the well-known card of the host.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: "/.well-known/agent-card.json", Handler: s.card},
		{Method: http.MethodGet, Pattern: "/.well-known/agent.json", Handler: s.card}, // clients before 0.3
		{Method: http.MethodGet, Pattern: "/a2a/.well-known/agent-card.json", Handler: s.card},
		{Method: http.MethodGet, Pattern: "/a2a/{agent}/.well-known/agent-card.json", Handler: s.card},
		{Method: http.MethodPost, Pattern: "/a2a", Handler: s.call, MaxBody: server.MaxMessageBody, Stream: true, Errors: respondError},
		{Method: http.MethodPost, Pattern: "/a2a/{agent}", Handler: s.call, MaxBody: server.MaxMessageBody, Stream: true, Errors: respondError},
	})
}

// call is one request with what its method needs.
type call struct {
	surface   *surface
	w         http.ResponseWriter
	r         *http.Request
	principal gateway.Principal
	agent     string // empty for the default one
	base      string // origin of the gateway, for the addresses of files
	method
	request request
}

// method is a method. A stream writes its response itself, and returns nil.
type method struct {
	run      func(*call) (any, error)
	isOld    bool // 0.3
	isStream bool
}

// methods are the methods of 1.0, and those of 0.3 by the same function.
var methods = map[string]method{
	"SendMessage":                        {run: (*call).send},
	"message/send":                       {run: (*call).send, isOld: true},
	"SendStreamingMessage":               {run: (*call).sendStreaming, isStream: true},
	"message/stream":                     {run: (*call).sendStreaming, isOld: true, isStream: true},
	"GetTask":                            {run: (*call).get},
	"tasks/get":                          {run: (*call).get, isOld: true},
	"ListTasks":                          {run: (*call).list},
	"CancelTask":                         {run: (*call).cancel},
	"tasks/cancel":                       {run: (*call).cancel, isOld: true},
	"SubscribeToTask":                    {run: (*call).subscribe, isStream: true},
	"tasks/resubscribe":                  {run: (*call).subscribe, isOld: true, isStream: true},
	"GetExtendedAgentCard":               {run: (*call).refuseCard},
	"agent/getAuthenticatedExtendedCard": {run: (*call).refuseCard, isOld: true},

	"CreateTaskPushNotificationConfig":    {run: (*call).refusePush},
	"GetTaskPushNotificationConfig":       {run: (*call).refusePush},
	"ListTaskPushNotificationConfigs":     {run: (*call).refusePush},
	"DeleteTaskPushNotificationConfig":    {run: (*call).refusePush},
	"tasks/pushNotificationConfig/set":    {run: (*call).refusePush, isOld: true},
	"tasks/pushNotificationConfig/get":    {run: (*call).refusePush, isOld: true},
	"tasks/pushNotificationConfig/list":   {run: (*call).refusePush, isOld: true},
	"tasks/pushNotificationConfig/delete": {run: (*call).refusePush, isOld: true},
}

// call answers a request. Errors of the method are part of the response.
func (s *surface) call(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c := &call{surface: s, w: w, r: r, principal: p, agent: r.PathValue("agent")}
	body, err := server.ReadBody(r)
	if err != nil {
		return err
	}
	if err := server.Unmarshal(body, &c.request, false); err != nil {
		server.WriteJSON(w, http.StatusBadRequest, response{Version: "2.0", ID: []byte("null"), Error: &rpcError{codeParse, chats.Sentence(server.Describe(err).Message)}})
		return nil
	}
	if len(c.request.ID) == 0 {
		c.request.ID = []byte("null")
	}
	result, err := c.carryOut()
	if err != nil {
		return c.refuse(err)
	}
	if result == nil {
		return nil
	}
	return server.Respond(w, response{Version: "2.0", ID: c.request.ID, Result: result}, nil)
}

// refuse responds with an error. An error of a method that streams is the only event of a stream: some clients read nothing else, and would
// take a JSON response with the status 200 for a stream without events.
func (c *call) refuse(err error) error {
	failure, status := errorOf(err)
	r := response{Version: "2.0", ID: c.request.ID, Error: failure}
	if !c.isStream || status != http.StatusOK {
		server.WriteJSON(c.w, status, r)
		return nil
	}
	b, err := appendEvent(nil, r)
	if err != nil {
		return err
	}
	stream, err := c.surface.srv.OpenStream(c.w, c.r, status, server.EventStream)
	if err == nil {
		_ = stream.Write(b) // a client that has disconnected needs no error
	}
	return nil
}

// carryOut carries out the method of the request.
func (c *call) carryOut() (any, error) {
	if err := c.request.check(); err != nil {
		return nil, err
	}
	m, ok := methods[c.request.Method]
	c.method = m
	// Clients of 0.3 have no such header, and the names of the methods tell the two versions apart.
	if v := c.r.Header.Get("A2A-Version"); v != "" && !strings.HasPrefix(v+".", "1.0.") && !strings.HasPrefix(v+".", "0.3.") {
		return nil, &rpcError{codeVersion, "The versions 1.0 and 0.3 are supported."}
	}
	if !ok {
		return nil, &rpcError{codeNoMethod, "Unknown method " + c.request.Method + "."}
	}
	if c.agent != "" && !c.hasAgent() {
		return nil, &rpcError{codeInvalidParams, "Unknown agent " + c.agent + "."}
	}
	if u, err := url.Parse(c.surface.address(c.r, "a")); err == nil {
		c.base = u.Scheme + "://" + u.Host
	}
	return m.run(c)
}

// hasAgent reports whether the caller may use the agent of the path.
func (c *call) hasAgent() bool {
	for _, a := range c.surface.gw.Catalog().Agents(c.principal) {
		if a.Name == c.agent {
			return true
		}
	}
	return false
}

func (c *call) ctx() context.Context { return c.r.Context() }

// refusePush refuses push notifications, which the card doesn't offer either. Leat's webhooks are configured by its operator.
func (c *call) refusePush() (any, error) {
	return nil, &rpcError{codeNoPush, "Push notifications are not supported; subscribe to the task instead."}
}

// refuseCard refuses the card for authenticated clients: the public card is only for these already.
func (c *call) refuseCard() (any, error) {
	return nil, &rpcError{codeUnsupported, "An extended agent card is not offered."}
}
