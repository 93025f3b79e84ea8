package native

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// Protocol is the name and version that every hello carries. It changes when a client that was written for it could misread.
const Protocol = "leat/1"

const (
	// MaxCommand bounds a command's JSON, in bytes: the longest message that the gateway takes, with its escapes.
	MaxCommand = server.MaxMessageBody
	// MaxSubscriptions bounds the conversations that are followed on one socket: far more than a page shows.
	MaxSubscriptions = 256
	// MaxPending bounds the commands of one socket that wait for their acknowledgement; the socket is not read above it.
	MaxPending = 64

	// batchBudget bounds a batch, in bytes about, so that a reader that is far behind gets on in steps.
	batchBudget = 1 << 20
	// authLimit is how long a socket may stay without a principal, and authFrame how large its first frame may be.
	authLimit = 10 * time.Second
	authFrame = server.MaxToken + 1<<10
	// ackEvery spaces acknowledgements of a pushed stream: a producer needs them only to know what it may forget.
	ackEvery = time.Second
	// maxMismatch bounds a report's body: some ids and numbers.
	maxMismatch = 4 << 10
	// endLimit is how long the other side may take to say goodbye.
	endLimit = 2 * time.Second
	// retryHint is what EventSource is told to wait before it connects again.
	retryHint = time.Second
)

type native struct {
	s  *server.Server
	gw *gateway.Gateway

	sse, ndjson, sockets *server.ViewerMetrics
}

// Register adds the native protocol's routes.
func Register(s *server.Server, gw *gateway.Gateway) {
	m := s.Metrics()
	n := &native{s: s, gw: gw, sse: m.Viewers("sse"), ndjson: m.Viewers("ndjson"), sockets: m.Viewers("socket")}
	for _, rt := range []server.Route{
		{Method: http.MethodGet, Pattern: "/api/conversations/{id}/events", Handler: n.events, Stream: true},
		{Method: http.MethodGet, Pattern: "/api/conversations/{id}/transcript", Handler: n.transcript},
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/commands", Handler: n.command, MaxBody: MaxCommand},
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/turns", Handler: n.postTurn, MaxBody: -1, Stream: true},
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/mismatches", Handler: n.mismatch, MaxBody: maxMismatch},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}", Handler: n.turn},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/trace", Handler: n.trace},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/log", Handler: n.told},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/recording", Handler: n.recording},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/explain", Handler: n.explain},
		{Method: http.MethodHead, Pattern: "/api/turns/{turn}/ingest", Handler: n.headIngest, Producer: true},
		{Method: http.MethodPatch, Pattern: "/api/turns/{turn}/ingest", Handler: n.patchIngest, MaxBody: -1, Stream: true, Producer: true},
		{Method: http.MethodGet, Pattern: "/api/agents", Handler: n.agents},
		{Method: http.MethodPost, Pattern: "/api/agents/check", Handler: n.checkAgents, Access: server.Admin},
		{Method: http.MethodGet, Pattern: "/api/agents/{name}/sessions", Handler: n.sessions, Access: server.Admin},
		{Method: http.MethodPost, Pattern: "/api/agents/{name}/sessions", Handler: n.attach, Access: server.Admin},
		{Method: http.MethodPost, Pattern: "/api/agents/{name}/discover", Handler: n.discover, Access: server.Admin},
		{Method: http.MethodGet, Pattern: "/api/dialects", Handler: n.dialects},
		{Method: http.MethodGet, Pattern: "/api/ws", Handler: n.socket, Access: server.InBand, Stream: true},
	} {
		if rt.Access == 0 {
			rt.Access = server.Authenticated
		}
		s.Handle(rt)
	}
}

// agents lists the agents.
func (n *native) agents(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"agents": n.gw.Agents(p)})
	return nil
}

// checkAgents lists the agents with the result of a request to each. It is a POST because it calls them.
func (n *native) checkAgents(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	all, err := n.gw.CheckAgents(r.Context(), p)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"agents": all})
	return nil
}

type dialectInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Framing string `json:"framing"` // "sse" or "lines"
}

func (n *native) dialects(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	all := []dialectInfo{}
	for _, d := range n.gw.Dialects() {
		framing := "sse"
		if d.Framing == dialect.Lines {
			framing = "lines"
		}
		all = append(all, dialectInfo{d.Name, d.Summary, framing})
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"dialects": all})
	return nil
}
