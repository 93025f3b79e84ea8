package elizaws

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/service/signals"
)

// Options are the parts of the gateway that the sockets show. All except QueryToken are required.
type Options struct {
	// Restart drains and restarts the gateway with its current configuration. It returns before the restart; an error means
	// that there will be none.
	Restart func() error
	Signals *signals.Log
	Hub     *hub.Hub
	Agent   *status.Agent
	// QueryToken accepts the token of a socket as ?token=, although proxies log URLs. It is for newer dashboards. They also
	// refuse input until the status has canRespond, so with QueryToken the status has it.
	QueryToken bool
}

type surface struct {
	srv *server.Server
	gw  *gateway.Gateway
	Options

	addresses addresses
	pings     *socket.Wheel
}

// actions change the state of the default agent.
var actions = []string{"start", "stop", "pause", "resume"}

// Register adds the routes to a server.
//
// The status and the events are for every user, limited to what the user may see. The actions of the agent
// and a restart affect all users, so they are for the admin.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, Options: opt, pings: socket.NewWheel(pingEvery, nil)}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/ws", Access: server.InBand, Stream: true, Handler: s.socket})
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/status", Access: server.Authenticated, Handler: s.status})
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/agent/events", Access: server.Authenticated, Handler: s.events})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/agent/event", Access: server.Authenticated, Handler: s.publish})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/signals", Access: server.Authenticated, MaxBody: maxLines, Handler: s.publishMany})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/agent/restart", Access: server.Admin, Handler: s.restart})
	for _, a := range actions {
		srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/agent/" + a, Access: server.Admin, Handler: s.act(a)})
	}
}

// sees reports whether p may see a signal of a conversation. Only the admin sees signals without one.
//
// It is called again for each signal and not once per connection, because shares change while a socket is
// open. A signal of a deleted conversation is removed from the log when the admin's check finds it: for
// another user, a missing conversation may only be one that the user may not see.
func (s *surface) sees(ctx context.Context, p gateway.Principal, conversation string) (bool, error) {
	if conversation == "" {
		return p.Admin, nil
	}
	_, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) {
		if p.Admin {
			s.Signals.Forget(conversation) // the conversation was deleted
		}
		return false, nil
	}
	return err == nil, err
}

// visibility returns sees with a cache. A list of signals names few conversations many times, and each first check reads the
// conversation's summary. The cache is for one list: a longer life would miss changes of permissions.
func (s *surface) visibility(ctx context.Context, p gateway.Principal) func(conversation string) (bool, error) {
	checked := map[string]bool{}
	return func(conversation string) (may bool, err error) {
		may, ok := checked[conversation]
		if !ok {
			if may, err = s.sees(ctx, p, conversation); err == nil {
				checked[conversation] = may
			}
		}
		return may, err
	}
}

// statusFrame is the status, in a frame and in the response to GET /api/status.
type statusFrame struct {
	Type           string       `json:"type,omitempty"`
	State          status.State `json:"state"`
	AgentName      string       `json:"agentName"`
	Model          string       `json:"model,omitempty"`
	StartedAt      int64        `json:"startedAt,omitempty"`
	Uptime         *int64       `json:"uptime,omitempty"` // milliseconds
	PendingRestart *bool        `json:"pendingRestart,omitempty"`
	Reasons        *[]string    `json:"pendingRestartReasons,omitempty"`
	CanRespond     *bool        `json:"canRespond,omitempty"`
}

// currentStatus returns the current status, for a frame or a response, optionally with the uptime and with the reasons for a restart.
//
// The gateway's own condition overrides the agent's: draining is shown as restarting, and failing commits
// as failing. Each frame is computed anew, so it is right at the moment at which it is sent.
func (s *surface) currentStatus(isFrame, uptime, pending bool) statusFrame {
	st := s.Agent.Status()
	f := statusFrame{State: st.State, AgentName: st.Name, Model: st.Model}
	if isFrame {
		f.Type = "status"
	}
	err := s.gw.Healthy()
	switch {
	case s.gw.Draining():
		f.State = status.StateRestarting
	case err != nil && f.State != status.StateNotStarted:
		f.State = status.StateFailing
	}
	if s.QueryToken || !isFrame {
		// An agent whose turns failed still accepts the next one.
		can := err == nil && (st.State == status.StateRunning || st.State == status.StateFailing)
		f.CanRespond = &can
	}
	var uptimeMS int64
	if !st.StartTime.IsZero() {
		f.StartedAt = st.StartTime.UnixMilli()
		uptimeMS = time.Since(st.StartTime).Milliseconds()
	}
	if uptime {
		f.Uptime = &uptimeMS
	}
	if pending {
		reasons, is := append([]string{}, st.Pending...), len(st.Pending) > 0
		f.PendingRestart, f.Reasons = &is, &reasons
	}
	return f
}

// status answers GET /api/status.
//
// The keys startup and cloud are constants: Eliza's clients require them, and there is no cloud here.
func (s *surface) status(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	f := s.currentStatus(false, true, true)
	type cloud struct {
		Connection string  `json:"connectionStatus"`
		Agent      *string `json:"activeAgentId"`
	}
	server.WriteJSON(w, http.StatusOK, struct {
		statusFrame
		Startup struct{} `json:"startup"`
		Cloud   cloud    `json:"cloud"`
	}{statusFrame: f, Cloud: cloud{Connection: "disconnected"}})
	return nil
}

// act returns the handler of POST /api/agent/{action}.
//
// The response has the status after the action.
func (s *surface) act(action string) server.Handler {
	return func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
		if _, ok := s.Agent.Do(action); !ok {
			return server.Errorf(http.StatusConflict, gateway.ReasonUnknownAgent, "no agent is configured")
		}
		f := s.currentStatus(false, true, true)
		server.WriteJSON(w, http.StatusOK, struct {
			OK     bool        `json:"ok"`
			Status statusFrame `json:"status"`
		}{true, f})
		return nil
	}
}

// RestartRequired returns the frame that reports changes that wait for a restart of the gateway. Every socket gets it.
func RestartRequired(reasons []string) hub.Frame {
	b, err := json.Marshal(struct {
		Type    string   `json:"type"`
		Reasons []string `json:"reasons"`
	}{"restart-required", reasons})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return hub.Frame{Broadcast: true, JSON: b}
}

// restart answers POST /api/agent/restart. The response is sent before the gateway restarts.
func (s *surface) restart(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	if err := s.Restart(); err != nil {
		return err
	}
	f := s.currentStatus(false, true, true)
	server.WriteJSON(w, http.StatusOK, struct {
		OK      bool        `json:"ok"`
		Pending bool        `json:"pendingRestart"`
		Status  statusFrame `json:"status"`
	}{true, *f.PendingRestart, f})
	return nil
}

// The limit on connections of one address.

// addresses counts the open sockets of each address. The zero value is ready to use.
//
// A network of IPv6 counts as one address, as for refused tokens: a provider assigns it to one customer.
type addresses struct {
	mu   sync.Mutex
	open map[netip.Prefix]int
}

// enter counts a socket, unless it comes from this machine. If its address has too many, enter returns an error. leave ends the
// count.
func (s *surface) enter(r *http.Request) (leave func(), err error) {
	if addr := server.ClientAddr(r); !addr.IsValid() || addr.IsLoopback() {
		return func() {}, nil // this machine, or an untrusted proxy on it that hides the client's address
	}
	from := server.ClientPrefix(r)
	a := &s.addresses
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[from] >= perAddress {
		return nil, &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "too many sockets are open from your address; close one", RetryAfter: authLimit}
	}
	if a.open == nil {
		a.open = map[netip.Prefix]int{}
	}
	a.open[from]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open[from]--; a.open[from] == 0 {
			delete(a.open, from)
		}
	}, nil
}
