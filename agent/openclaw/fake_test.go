package openclaw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const fakeToken = "s3cret-token"

// fakeGateway is a gateway in memory, so that it runs in a synctest bubble. It is strict: it refuses requests that a real
// gateway refuses.
type fakeGateway struct {
	t        testing.TB
	protocol int
	server   *http.Server
	accept   chan net.Conn
	tasks    sync.WaitGroup
	serving  sync.WaitGroup

	mu           sync.Mutex
	down         bool
	began        time.Time
	conns        map[*fakeConn]bool
	sessions     map[string]*fakeSession
	runs         map[string]*fakeRun
	calls        []string // methods, in order
	limits       []int    // limits of the histories that were read, in order
	play         func(*fakeRun)
	artifacts    map[string]string // base64 by id
	decisions    map[string]string // of approvals
	disownedRuns map[string]bool   // keys of messages that were queued at a crash: they are refused
	pending      []map[string]any  // approvals
	// Each element of these faults is used once, in order.
	dialed      []time.Time
	dials       []func(w http.ResponseWriter) // instead of opening a WebSocket
	greetings   []func(c *fakeConn)           // instead of the handshake
	refusals    []map[string]any              // errors of chat.send
	rowLimits   []int                         // row limits of stale histories: the rows were read earlier than the run in progress
	missesScope bool
	isUnpaired  bool
	onHistory   func() // called before a history is returned
	media       http.HandlerFunc
}

type fakeSession struct {
	rows     []map[string]any
	inFlight *fakeRun
	queue    []*fakeRun // messages that are queued until the session is free
}

func newFake(t testing.TB, protocol int, play func(*fakeRun)) *fakeGateway {
	t.Helper()
	f := &fakeGateway{
		t: t, protocol: protocol, accept: make(chan net.Conn), began: time.Now(), conns: map[*fakeConn]bool{},
		sessions: map[string]*fakeSession{}, runs: map[string]*fakeRun{}, play: play, artifacts: map[string]string{}, decisions: map[string]string{}, disownedRuns: map[string]bool{},
	}
	f.server = &http.Server{Handler: http.HandlerFunc(f.serve), ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}}
	f.tasks.Go(func() { _ = f.server.Serve(f) }) // ends with Close
	return f
}

type connKey struct{}

// Accept, Close and Addr implement net.Listener.
func (f *fakeGateway) Accept() (net.Conn, error) {
	c, ok := <-f.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (f *fakeGateway) Close() error   { return nil }
func (f *fakeGateway) Addr() net.Addr { return &net.TCPAddr{} }

func (f *fakeGateway) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	down := f.down
	f.dialed = append(f.dialed, time.Now())
	f.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case f.accept <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop shuts the gateway down and waits for its goroutines. Its clients must be closed.
func (f *fakeGateway) stop() {
	f.crash()
	close(f.accept)
	_ = f.server.Close() // its connections are gone
	f.tasks.Wait()
	f.serving.Wait()
}

// crash drops all connections and cancels all runs, as if the process were killed.
func (f *fakeGateway) crash() {
	f.mu.Lock()
	f.down = true
	conns := f.conns
	f.conns = map[*fakeConn]bool{}
	for _, r := range f.runs {
		r.cancel()
	}
	f.runs = map[string]*fakeRun{}
	for _, s := range f.sessions {
		for _, r := range s.queue {
			f.disownedRuns[r.id] = true
		}
		s.inFlight, s.queue = nil, nil
	}
	f.mu.Unlock()
	for c := range conns {
		_ = c.raw.Close()
	}
}

// restart accepts connections again, as a new process.
func (f *fakeGateway) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.began = false, time.Now()
}

// dropConnections drops all connections; runs continue.
func (f *fakeGateway) dropConnections() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.raw.Close()
	}
}

func (f *fakeGateway) count(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.calls {
		if m == method {
			n++
		}
	}
	return n
}

func (f *fakeGateway) serve(w http.ResponseWriter, r *http.Request) {
	f.serving.Add(1)
	defer f.serving.Done()
	if strings.HasPrefix(r.URL.Path, "/api/") {
		f.media(w, r)
		return
	}
	f.mu.Lock()
	var dial func(http.ResponseWriter)
	if len(f.dials) > 0 {
		dial, f.dials = f.dials[0], f.dials[1:]
	}
	f.mu.Unlock()
	if dial != nil {
		dial(w)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	raw, _ := r.Context().Value(connKey{}).(net.Conn)
	c := &fakeConn{gateway: f, ws: ws, raw: raw, subscriptions: map[string]bool{}}
	f.mu.Lock()
	f.conns[c] = true
	var greet func(*fakeConn)
	if len(f.greetings) > 0 {
		greet, f.greetings = f.greetings[0], f.greetings[1:]
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.conns, c)
		f.mu.Unlock()
		_ = ws.CloseNow()
	}()
	if greet != nil {
		greet(c)
		return
	}
	c.run()
}

func invalid(format string, args ...any) map[string]any {
	return map[string]any{"code": "INVALID_REQUEST", "message": fmt.Sprintf(format, args...)}
}

// call executes a request. It returns the payload or the error of the response.
func (f *fakeGateway) call(c *fakeConn, q fakeRequest) (payload any, rerr map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, q.Method)
	if f.missesScope {
		return nil, map[string]any{"code": "FORBIDDEN", "message": "missing scope: operator.write", "details": map[string]any{"code": "MISSING_SCOPE", "missingScope": "operator.write"}}
	}
	bad := func(err error) (any, map[string]any) { return nil, invalid("invalid %s params: %v", q.Method, err) }
	switch q.Method {
	case "chat.send":
		var p struct {
			SessionKey, Message, IdempotencyKey string
			QueueMode                           string
			Attachments                         []map[string]any
		}
		if err := decodeStrict(q.Params, &p); err != nil {
			return bad(err)
		}
		if p.SessionKey == "" || p.IdempotencyKey == "" || p.Message == "" && len(p.Attachments) == 0 {
			return nil, invalid("message or attachment required")
		}
		if f.protocol < numberedProtocol && p.QueueMode != "" {
			return nil, invalid("invalid chat.send params: at root: unexpected property 'queueMode'")
		}
		if len(f.refusals) > 0 {
			rerr, f.refusals = f.refusals[0], f.refusals[1:]
			return nil, rerr
		}
		if f.disownedRuns[p.IdempotencyKey] {
			return nil, map[string]any{"code": "UNAVAILABLE", "message": "Error: Pending input ownership ended; submit a new turn to continue"}
		}
		return f.begin(c, p.SessionKey, p.Message, p.IdempotencyKey, p.QueueMode, p.Attachments)
	case "chat.abort":
		var p struct{ SessionKey, RunID string }
		if err := decodeStrict(q.Params, &p); err != nil || p.SessionKey == "" {
			return bad(err)
		}
		r := f.runs[p.RunID]
		if r == nil || r.isOver {
			return map[string]any{"ok": true, "aborted": false, "runIds": []string{}}, nil
		}
		r.cancel()
		return map[string]any{"ok": true, "aborted": true, "runIds": []string{r.id}}, nil
	case "chat.history":
		var p struct {
			SessionKey      string
			Limit, MaxChars int
		}
		if err := decodeStrict(q.Params, &p); err != nil || p.SessionKey == "" || p.Limit > 1000 || f.protocol < numberedProtocol && p.MaxChars != 0 {
			return bad(err)
		}
		f.limits = append(f.limits, p.Limit)
		h := f.historyOf(p.SessionKey)
		if rows := h["messages"].([]map[string]any); len(f.rowLimits) > 0 {
			h["messages"] = rows[:min(len(rows), f.rowLimits[0])]
			f.rowLimits = f.rowLimits[1:]
		} else if p.Limit > 0 {
			h["messages"] = rows[max(0, len(rows)-p.Limit):]
		}
		return h, nil
	case "agents.list":
		var p struct{}
		if err := decodeStrict(q.Params, &p); err != nil {
			return bad(err)
		}
		return map[string]any{"defaultId": "main", "mainKey": "main", "scope": "per-sender", "agents": []map[string]any{{"id": "main", "name": "Clawd"}, {"id": "ops"}}}, nil
	case "sessions.list":
		var p struct{ Limit int }
		if err := decodeStrict(q.Params, &p); err != nil || p.Limit < 1 {
			return bad(err)
		}
		return map[string]any{"count": 1, "sessions": []map[string]any{{"key": "agent:main:leat-1", "kind": "direct", "displayName": "On a walk", "updatedAt": 1795190400000}}}, nil
	case "sessions.messages.subscribe":
		var p struct{ Key string }
		if err := decodeStrict(q.Params, &p); err != nil || p.Key == "" {
			return bad(err)
		}
		c.subscriptions[p.Key] = true
		return map[string]any{"subscribed": true, "key": p.Key}, nil
	case "sessions.patch":
		var p struct{ Key, VerboseLevel string }
		if err := decodeStrict(q.Params, &p); err != nil || p.VerboseLevel != "full" {
			return bad(err)
		}
		return map[string]any{"ok": true}, nil
	case "artifacts.download":
		var p struct{ SessionKey, ArtifactID string }
		if err := decodeStrict(q.Params, &p); err != nil {
			return bad(err)
		}
		if f.artifacts[p.ArtifactID] == "" {
			return nil, invalid("artifact not found")
		}
		return map[string]any{"artifact": map[string]any{"id": p.ArtifactID}, "encoding": "base64", "data": f.artifacts[p.ArtifactID]}, nil
	case "exec.approval.list", "plugin.approval.list":
		if q.Method[0] == 'p' {
			return []any{}, nil
		}
		return append([]map[string]any{}, f.pending...), nil
	case "exec.approval.resolve":
		var p struct{ ID, Decision string }
		if err := decodeStrict(q.Params, &p); err != nil || !slices.Contains([]string{"allow-once", "allow-always", "deny"}, p.Decision) {
			return nil, invalid("invalid decision")
		}
		f.decisions[p.ID] = p.Decision
		return map[string]any{"ok": true}, nil
	}
	return nil, invalid("unknown method: %s", q.Method)
}

// begin starts a run unless the key is already used. The caller holds f.mu.
func (f *fakeGateway) begin(c *fakeConn, session, message, key, mode string, attachments []map[string]any) (any, map[string]any) {
	if session != strings.ToLower(session) || !strings.HasPrefix(session, "agent:") {
		f.t.Errorf("fake: the session %q is not canonical", session)
	}
	if r := f.runs[key]; r != nil {
		status := "in_flight"
		if r.isOver && f.protocol >= numberedProtocol {
			status = "ok"
		}
		return map[string]any{"runId": key, "status": status}, nil
	}
	s := f.sessions[session]
	if s == nil {
		s = &fakeSession{}
		f.sessions[session] = s
	}
	r := &fakeRun{f: f, id: key, session: session, owner: c, params: map[string]any{"message": message, "attachments": attachments}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	f.runs[key] = r
	row := r.userRow(key)
	busy := s.inFlight != nil && !s.inFlight.isOver
	switch {
	case busy && (mode == "followup" || f.protocol < numberedProtocol):
		// The run ends without an answer; a run with another id answers the message once the session is free.
		s.queue = append(s.queue, r)
		f.tasks.Go(func() {
			r.wait(50 * time.Millisecond)
			r.broadcast("chat", map[string]any{"state": "final"})
		})
		return map[string]any{"runId": key, "status": "started"}, nil
	case busy:
		row["__openclaw"] = map[string]any{"steerTargetRunId": s.inFlight.id}
		s.inFlight.steered = append(s.inFlight.steered, r)
	default:
		s.inFlight = r
		f.tasks.Go(func() { f.play(r) })
	}
	r.addRow(row)
	return map[string]any{"runId": key, "status": "started"}, nil
}

// beginRecovery starts the run with which a restarted gateway continues an interrupted one.
func (f *fakeGateway) beginRecovery(session string, play func(*fakeRun)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &fakeRun{f: f, id: "recovery-run", session: session, params: map[string]any{"message": "Your previous turn was interrupted."}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	f.runs[r.id], f.sessions[session].inFlight = r, r
	f.tasks.Go(func() { play(r) })
}

// answerNext starts the run that answers the oldest queued message. The caller holds f.mu.
func (f *fakeGateway) answerNext(s *fakeSession) {
	if len(s.queue) == 0 {
		return
	}
	waiting := s.queue[0]
	s.queue = s.queue[1:]
	r := &fakeRun{f: f, id: "answers-" + waiting.id, session: waiting.session, params: waiting.params}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if f.protocol >= numberedProtocol {
		r.owner = waiting.owner
	}
	f.runs[r.id], s.inFlight = r, r
	f.tasks.Go(func() {
		r.wait(200 * time.Millisecond)
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.addRows(r.userRow(waiting.id))
		f.play(r)
	})
}

func (f *fakeGateway) historyOf(session string) map[string]any {
	s := f.sessions[session]
	if s == nil {
		s = &fakeSession{}
	}
	h := map[string]any{"sessionKey": session, "messages": append([]map[string]any{}, s.rows...)}
	if f.protocol >= numberedProtocol {
		info := map[string]any{"hasActiveRun": false, "activeRunIds": []string{}}
		if r := s.inFlight; r != nil && !r.isOver {
			if !r.isUnlisted {
				h["inFlightRun"] = map[string]any{"runId": r.id, "text": ""}
			}
			info = map[string]any{"hasActiveRun": true}
		}
		h["sessionInfo"] = info
		var waiting []map[string]any
		for _, r := range s.queue {
			waiting = append(waiting, map[string]any{"runId": r.id, "state": "queued"})
		}
		h["pendingInputs"] = map[string]any{"items": waiting}
	}
	return h
}

// eachConn calls do for every admitted connection.
func (f *fakeGateway) eachConn(do func(*fakeConn)) {
	f.mu.Lock()
	var to []*fakeConn
	for c := range f.conns {
		if c.isAdmitted {
			to = append(to, c)
		}
	}
	f.mu.Unlock()
	for _, c := range to {
		do(c)
	}
}
