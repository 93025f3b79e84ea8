package native

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/fanout"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// Protocol is the name and version in every hello frame. It changes when a client for the old version could misread the new
// one.
const Protocol = "leat/1"

const (
	// maxCommand is the largest command, in bytes of JSON: the longest message that the gateway accepts, with its escapes.
	maxCommand = server.MaxMessageBody
	// maxSubscriptions is the largest number of subscriptions on one socket, far above the number that a page shows.
	maxSubscriptions = 256
	// maxPending is how many requests of one socket run at a time. Further frames are not read until one of them is answered.
	maxPending = 64

	// batchBudget is the approximate size of a batch in bytes. A reader that is far behind catches up in several frames.
	batchBudget = 1 << 20
	// authLimit is how long a client may take to authenticate on its socket. authFrame is the largest first frame, in bytes.
	authLimit = 10 * time.Second
	authFrame = server.MaxToken + 1<<10
	// ackEvery is the interval between acknowledgements of a pushed stream. Producers use them only to free their buffers.
	ackEvery = time.Second
	// endLimit is how long the last line of an ingest waits for the gateway to end a turn whose stream is invalid.
	endLimit = 2 * time.Second
	// retryHint is how long an EventSource waits before it reconnects.
	retryHint = time.Second
)

// native has the handlers of the protocol, except those for producers and for inspection. The metrics
// count the readers of each transport separately. All fields are set before the first request.
type native struct {
	s  *server.Server
	gw *gateway.Gateway

	sse, ndjson, sockets *server.ViewerMetrics

	viewers *fanout.Pool  // those without a goroutine
	wheel   *socket.Wheel // of the sockets
}

// Register adds the native protocol's routes.
func Register(s *server.Server, gw *gateway.Gateway) {
	m := s.Metrics()
	n := &native{
		s: s, gw: gw, sse: m.Viewers("sse"), ndjson: m.Viewers("ndjson"), sockets: m.Viewers("socket"),
		viewers: fanout.New(s.Options().Heartbeat, heartbeats), wheel: socket.NewWheel(s.Options().Heartbeat, pingFrame),
	}
	s.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: "/api/conversations/{id}/events", Handler: n.events, Stream: true},
		{Method: http.MethodGet, Pattern: "/api/conversations/{id}/transcript", Handler: n.transcript},
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/commands", Handler: n.command, MaxBody: maxCommand},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}", Handler: n.turn},
		{Method: http.MethodGet, Pattern: "/api/agents", Handler: n.agents},
		{Method: http.MethodPost, Pattern: "/api/agents/check", Handler: n.checkAgents, Access: server.Admin},
		{Method: http.MethodGet, Pattern: "/api/agents/{name}/sessions", Handler: n.sessions, Access: server.Admin},
		{Method: http.MethodPost, Pattern: "/api/agents/{name}/sessions", Handler: n.attach, Access: server.Admin},
		{Method: http.MethodPost, Pattern: "/api/agents/{name}/discover", Handler: n.discover, Access: server.Admin},
		{Method: http.MethodGet, Pattern: "/api/dialects", Handler: n.dialects},
		{Method: http.MethodGet, Pattern: "/api/ws", Handler: n.socket, Access: server.InBand, Stream: true},
	})
}

// agents answers GET /api/agents.
//
// It lists the agents that the caller may use, without calling any of them.
func (n *native) agents(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	return server.Respond(w, map[string]any{"agents": n.gw.Catalog().Agents(p)}, nil)
}

// checkAgents answers POST /api/agents/check: the agents, each with the result of a request to it. It is a POST because it
// calls them.
func (n *native) checkAgents(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	agents, err := n.gw.Catalog().Check(r.Context(), p)
	return server.Respond(w, map[string]any{"agents": agents}, err)
}

// dialectInfo describes a dialect in which a producer may push its stream. Framing is how a decoder splits
// the body into frames.
type dialectInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Framing string `json:"framing"` // "sse" or "lines"
}

// dialects answers GET /api/dialects. The list is the same for all users.
func (n *native) dialects(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	dialects := []dialectInfo{}
	for _, d := range n.gw.Catalog().Dialects() {
		framing := "sse"
		if d.Framing == dialect.Lines {
			framing = "lines"
		}
		dialects = append(dialects, dialectInfo{d.Name, d.Summary, framing})
	}
	return server.Respond(w, map[string]any{"dialects": dialects}, nil)
}

// headerKey carries a command's idempotency key if the body has none.
const headerKey = "Idempotency-Key"

// command answers POST /api/conversations/{id}/commands.
//
// A key makes a command idempotent: a repetition returns the first result. The header exists for clients
// whose HTTP library sets it with each retry. Two different keys are refused, because to choose one would
// silently break the other's retries.
func (n *native) command(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var c gateway.Command
	if err := server.DecodeStrict(r, &c); err != nil {
		return err
	}
	if key := r.Header.Get(headerKey); key != "" {
		if c.Key != "" && c.Key != key {
			return server.Invalid("the key in the body differs from the %s header; send one of them", headerKey)
		}
		c.Key = key
	}
	ack, err := n.gw.Do(r.Context(), p, r.PathValue("id"), c)
	return server.Respond(w, ack, err)
}
