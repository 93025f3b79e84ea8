package elizaws

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// sick is a journal that can report that it is unable to store anything.
type sick struct {
	journal.Journal
	ill atomic.Bool
}

func (s *sick) Healthy() error {
	if s.ill.Load() {
		return errors.New("the disk is full")
	}
	return s.Journal.Healthy()
}

// All seven states as a socket reports them.
func TestStates(t *testing.T) {
	j := &sick{Journal: memory.New()}
	defer func() { _ = j.Close() }()
	own := status.NewAgent("eliza", "test")
	h := openHarness(t, j, func(_ *server.Options, o *Options) { o.Agent = own })
	c := h.dial("", "Authorization", "Bearer "+secret)
	wantFrame(t, c.next(), `{"type":"status","state":"not_started","agentName":"eliza","model":"test","uptime":TS}`)
	c.send(`{"type":"ping"}`).want("pong")
	is := func(state, started string) {
		t.Helper()
		wantFrame(t, c.next(), `{"type":"status","state":"`+state+`","agentName":"eliza","model":"test"`+started+`,"pendingRestart":false,"pendingRestartReasons":[]}`)
	}
	const since = `,"startedAt":TS`
	post := func(action string) {
		t.Helper()
		h.wantCall(200, `"ok":true`, "POST", "/api/agent/"+action, "")
	}
	own.Begin()
	is("starting", "")
	own.Ready()
	is("running", since)
	post("pause")
	is("paused", since)
	post("resume")
	is("running", since)
	post("stop")
	is("stopped", "")
	post("start")
	is("running", since)
	for range 3 {
		own.Committed(nil, []event.Event{
			{Type: event.TurnStart, Turn: "t", Body: &event.Body{Agent: "eliza"}},
			{Type: event.TurnEnd, Turn: "t", Body: &event.Body{Outcome: event.Failed}},
		})
	}
	is("error", since)
	own.Pend("default_agent changed")
	if f := c.next(); !strings.Contains(f.raw, `"pendingRestart":true`) {
		t.Errorf("a reason to restart tells %s", f.raw)
	}
	h.wantCall(200, `{"ok":true,"pendingRestart":false,"status":{"state":"restarting"`, "POST", "/api/agent/restart", "")
	for f := c.next(); !strings.Contains(f.raw, `"restarting"`); f = c.next() { // the first of two changes may have a separate frame
		if !strings.Contains(f.raw, `"error"`) {
			t.Errorf("a restart tells %s", f.raw)
		}
	}
	own.Ready()
	for f := c.next(); !strings.Contains(f.raw, `"running"`); f = c.next() {
		if !strings.Contains(f.raw, `"restarting"`) {
			t.Errorf("after a restart comes %s", f.raw)
		}
	}
	j.ill.Store(true)
	post("pause")
	is("error", since)
	h.wantCall(200, `{"state":"error",`, "GET", "/api/status", "")
	j.ill.Store(false)
	post("resume")
	is("running", since)
	own.Leave()
	is("restarting", since)
	// The last frame of a socket explains why it ends.
	h.srv.Close()
	is("restarting", since)
	if _, _, err := c.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("the socket ends with %v", err)
	}

	// Without an agent, nothing starts.
	h = newHarness(t, func(_ *server.Options, o *Options) {
		o.Agent = status.NewAgent("", "")
		o.Agent.Begin()
		o.Agent.Ready()
	})
	wantFrame(t, h.dial("", "Authorization", "Bearer "+secret).next(), `{"type":"status","state":"not_started","agentName":"","uptime":TS}`)
	h.wantCall(409, "no agent is configured", "POST", "/api/agent/start", "")
}

// A journal that can't store anything changes the state within a second, and so does its recovery.
func TestIllness(t *testing.T) {
	timed(t, func(h *harness, dial func(http.Header) *client) {
		j := h.journal.(*sick)
		watching, stop := context.WithCancel(context.Background())
		var tasks sync.WaitGroup
		tasks.Go(func() { h.agent.Watch(watching, h.gw.Healthy) })
		synctest.Wait() // the healthy state was reported
		c := dial(http.Header{"Authorization": {"Bearer " + secret}})
		c.want("status")
		for _, state := range []string{"error", "running", "error", "running"} {
			at := time.Now()
			j.ill.Store(state == "error")
			if f := c.want("status"); f.State != state || time.Since(at) > time.Second {
				t.Errorf("after %v: %s", time.Since(at), f.raw)
			}
		}
		stop()
		tasks.Wait()
		_ = c.conn.CloseNow()
	})
}

// Newer dashboards refuse input until the status has canRespond: in GET /api/status, and on sockets with the option for them.
func TestCanRespond(t *testing.T) {
	h := newHarness(t, func(_ *server.Options, o *Options) { o.QueryToken = true })
	c := h.dial("?token=" + secret)
	wantFrame(t, c.next(), `{"type":"status","state":"running","agentName":"eliza","model":"test","startedAt":TS,"uptime":TS,"canRespond":true}`)
	c.send(`{"type":"ping"}`).want("pong")
	h.wantCall(200, `"canRespond":true`, "GET", "/api/status", "")
	h.wantCall(200, `"canRespond":false`, "POST", "/api/agent/pause", "")
	wantFrame(t, c.next(), `{"type":"status","state":"paused","agentName":"eliza","model":"test","startedAt":TS,"pendingRestart":false,"pendingRestartReasons":[],"canRespond":false}`)
}

// Every socket is informed of changes that wait for a restart.
func TestRestartRequired(t *testing.T) {
	h := newHarness(t, nil)
	all := []*client{h.greeted(""), h.greeted("", as("alice")...)}
	for _, c := range all {
		c.send(`{"type":"ping"}`).want("pong") // the socket has joined
	}
	h.hub.Send(RestartRequired([]string{"Shell access enabled", "Plugin configuration changed"}))
	for _, c := range all {
		wantFrame(t, c.want("restart-required"), `{"type":"restart-required","reasons":["Shell access enabled","Plugin configuration changed"]}`)
	}
}
