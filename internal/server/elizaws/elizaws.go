package elizaws

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

// Options are what the surface shows. All but QueryToken are needed.
type Options struct {
	// Restart drains and restarts the gateway with its current configuration, after it has returned. Its error says why nothing
	// was restarted.
	Restart func() error
	Signals *signals.Log
	Hub     *hub.Hub
	Agent   *status.Agent
	// QueryToken lets a socket bring its token as ?token=, where it gets into the logs of proxies. It is for newer dashboards,
	// which let nobody write either while a status does not say canRespond: so it says that too.
	QueryToken bool
}

type surface struct {
	srv *server.Server
	gw  *gateway.Gateway
	opt Options

	addresses addresses
}

// The methods' words that change the default agent's state.
var actions = []string{"start", "stop", "pause", "resume"}

// Register adds the routes of the surface to a server.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, opt: opt}
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

// sees reports whether p may see what is about a conversation; what is about none is the admin's.
func (s *surface) sees(ctx context.Context, p gateway.Principal, conversation string) (bool, error) {
	if conversation == "" {
		return p.Admin, nil
	}
	_, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, gateway.ErrForbidden) {
		if p.Admin {
			s.opt.Signals.Forget(conversation) // it was deleted
		}
		return false, nil
	}
	return err == nil, err
}

// statusFrame is the status, on the socket and in the answer to GET /api/status.
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

// now returns the status, of a socket or of an answer. uptime is told where it is asked for, and pending.
func (s *surface) now(socket, uptime, pending bool) statusFrame {
	st := s.opt.Agent.Status()
	f := statusFrame{Type: "status", State: st.State, AgentName: st.Name, Model: st.Model}
	err := s.gw.Healthy()
	switch {
	case s.gw.Draining():
		f.State = status.Restarting
	case err != nil && f.State != status.NotStarted:
		f.State = status.Failing
	}
	if s.opt.QueryToken || !socket {
		// An agent whose turns failed takes the next one all the same.
		can := err == nil && (st.State == status.Running || st.State == status.Failing)
		f.CanRespond = &can
	}
	var up int64
	if !st.Started.IsZero() {
		f.StartedAt = st.Started.UnixMilli()
		up = time.Since(st.Started).Milliseconds()
	}
	if uptime {
		f.Uptime = &up
	}
	if pending {
		reasons, is := append([]string{}, st.Pending...), len(st.Pending) > 0
		f.PendingRestart, f.Reasons = &is, &reasons
	}
	return f
}

// status answers GET /api/status.
func (s *surface) status(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	f := s.now(false, true, true)
	f.Type = ""
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

// act answers POST /api/agent/{action}.
func (s *surface) act(action string) server.Handler {
	return func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
		if _, ok := s.opt.Agent.Do(action); !ok {
			return server.Errorf(http.StatusConflict, gateway.ReasonUnknownAgent, "no agent is configured")
		}
		f := s.now(false, true, true)
		f.Type = ""
		server.WriteJSON(w, http.StatusOK, struct {
			OK     bool        `json:"ok"`
			Status statusFrame `json:"status"`
		}{true, f})
		return nil
	}
}
