package leat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/server/servertest"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/test/badnet"
)

// lively is a gateway with live events, whose connections a test can cut.
type lively struct {
	*leat.Client
	hub   *hub.Hub
	log   *signals.Log
	agent *status.Agent
	conns *cutter
}

func newLively(t *testing.T) *lively {
	t.Helper()
	const token = "sesame"
	j := memory.New()
	h := &lively{log: signals.New(j, slog.New(slog.DiscardHandler)), agent: status.NewAgent("story", "test")}
	if err := h.log.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	gw, err := gateway.New(gateway.Config{Journal: j, Settings: gateway.Settings{Drain: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.agent.Ready()
	h.hub = hub.New(gw)
	srv := server.New(server.Options{Token: token})
	elizaws.Register(srv, gw, elizaws.Options{Signals: h.log, Hub: h.hub, Agent: h.agent})
	ts := httptest.NewUnstartedServer(srv)
	h.conns = &cutter{Listener: ts.Listener}
	ts.Listener = h.conns
	ts.Start()
	transport := &http.Transport{}
	h.Client = &leat.Client{URL: ts.URL, Token: token, HTTP: &http.Client{Transport: transport}}
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *lively) publish(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if _, err := h.log.Publish(t.Context(), signals.Signal{Type: signals.TrainingEvent, Payload: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Each signal is delivered once and in order, across disconnects. The agent's status and broadcasts are decoded into their types.
func TestLive(t *testing.T) {
	h := newLively(t)
	h.publish(t, 3)
	hurry := make(chan struct{})
	close(hurry) // nobody waits
	l := h.Live(leat.LiveOptions{Hurry: hurry})
	var ids []string
	statuses := 0
	err := l.Run(t.Context(), func(e *leat.LiveEvent) error {
		switch {
		case e.Status != nil:
			if statuses++; statuses == 1 && (e.Status.State != "running" || e.Status.Agent != "story" || e.Status.StartedAt == 0) {
				t.Errorf("status %+v", e.Status)
			}
		case e.Signal != nil:
			ids = append(ids, e.Signal.EventID)
			switch len(ids) {
			case 3, 6:
				h.conns.cut()
				h.publish(t, 3)
			case 9:
				h.hub.Send(elizaws.RestartRequired([]string{"a", "b"}))
			}
		case e.Type == "restart-required":
			if !slices.Equal(e.Reasons, []string{"a", "b"}) {
				t.Errorf("reasons %q", e.Reasons)
			}
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 9 {
		want = append(want, signals.ID(int64(i+1)))
	}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if statuses < 3 {
		t.Errorf("%d connections", statuses)
	}
}

// After a refused token, a new one is requested once; the second refusal is returned.
func TestLiveToken(t *testing.T) {
	h := newLively(t)
	h.Token = "wrong"
	var e *leat.Error
	if err := h.Live(leat.LiveOptions{}).Run(t.Context(), func(*leat.LiveEvent) error { return nil }); !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		t.Errorf("%v", err)
	}
	asked := 0
	h.TokenSource = func() (string, error) {
		if asked++; asked == 1 {
			return "old", nil
		}
		return "sesame", nil
	}
	if err := h.Live(leat.LiveOptions{}).Run(t.Context(), func(*leat.LiveEvent) error { return leat.ErrStop }); err != nil || asked != 2 {
		t.Errorf("%v after %d tokens", err, asked)
	}
}

// An event of every type that the client knows.
func TestLiveEvents(t *testing.T) {
	var got []*leat.LiveEvent
	err := wires(t, []string{
		`{"type":"status","state":"running","agentName":"a","pendingRestart":true,"pendingRestartReasons":["x"]}`,
		`{"type":"agent_event","version":1,"eventId":"evt-7","ts":5,"runId":"r","seq":2,"stream":"assistant","roomId":"c","payload":{"text":"hi"}}`,
		`{"type":"proactive-message","conversationId":"c","message":{"id":"m","role":"assistant","text":"psst","timestamp":9,"source":"autonomy"}}`,
		`{"type":"conversation-updated","conversation":{"id":"c","title":"New","roomId":"c","createdAt":"2024-02-15T10:00:00.000Z","updatedAt":"2024-02-15T10:30:00.000Z"}}`,
		`{"type":"replay-gap","after":"evt-1","first":"evt-5"}`,
		`{"type":"resync","missed":4}`,
		`{"type":"conversation-read","conversationId":"c","unread":true,"read":3}`,
		`{"type":"of tomorrow","x":1}`,
		`{"type":"conversation-deleted","conversationId":"c"}`,
	}, nil).Live(leat.LiveOptions{}).Run(t.Context(), func(e *leat.LiveEvent) error {
		if got = append(got, e); len(got) == 9 {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := got[0].Status; !s.Pending || s.Reasons[0] != "x" {
		t.Errorf("status %+v", s)
	}
	if s := got[1].Signal; s.EventID != "evt-7" || s.Run != "r" || *s.Seq != 2 || s.Room != "c" || string(s.Payload) != `{"text":"hi"}` {
		t.Errorf("signal %+v", s)
	}
	if p := got[2].Proactive; p.Conversation != "c" || p.Message.Text != "psst" || p.Message.Source != "autonomy" {
		t.Errorf("proactive %+v", p)
	}
	if c := got[3].Conversation; c.ID != "c" || c.Title != "New" || c.Updated.Sub(c.Created) != 30*time.Minute {
		t.Errorf("conversation %+v", c)
	}
	if g := got[4].Gap; g.After != "evt-1" || g.FirstSignal != "evt-5" || got[5].MissedFrames != 4 || got[7].Type != "of tomorrow" {
		t.Errorf("gap %+v, missed %d, type %q", g, got[5].MissedFrames, got[7].Type)
	}
	if got[8].Deleted != "c" {
		t.Errorf("deleted %+v", got[8])
	}
	if r := got[6].Read; r.Conversation != "c" || !r.Unread || r.Seq != 3 {
		t.Errorf("read %+v", r)
	}
}

// wires is a client of a server that sends frames on each socket and hands on what comes; a frame "cut" cuts it.
func wires(t *testing.T, frames []string, heard func(conn int, frame string) (end bool)) *leat.Client {
	t.Helper()
	var mu sync.Mutex
	conns := 0
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.CloseNow() }()
		mu.Lock()
		conns++
		n := conns
		mu.Unlock()
		for _, f := range frames {
			if c.Write(r.Context(), websocket.MessageText, []byte(f)) != nil {
				return
			}
		}
		for {
			_, b, err := c.Read(r.Context())
			if err != nil || heard != nil && heard(n, string(b)) {
				return
			}
		}
	}))
	transport := &http.Transport{}
	t.Cleanup(func() { ts.CloseClientConnections(); transport.CloseIdleConnections(); ts.Close() })
	return &leat.Client{URL: ts.URL, HTTP: &http.Client{Transport: transport}}
}

// Without a connection 32 frames are queued, and newer frames drop the oldest. The active conversation is queued once, and is sent again on
// every new connection.
func TestLiveQueue(t *testing.T) {
	const look = `{"type":"active-conversation","conversationId":"c41"}`
	heard := make(chan string, 100)
	c := wires(t, []string{`{"type":"status","state":"running","agentName":"a"}`}, func(conn int, frame string) bool {
		heard <- fmt.Sprint(conn, " ", frame)
		return conn == 1 && strings.Contains(frame, `"n":39`)
	})
	var dropped []string
	hurry := make(chan struct{})
	close(hurry)
	l := c.Live(leat.LiveOptions{Hurry: hurry, OnDrop: func(f json.RawMessage) { dropped = append(dropped, string(f)) }})
	for i := range 40 {
		if err := l.Send(map[string]any{"type": "x", "n": i}); err != nil {
			t.Fatal(err)
		}
		if i == 20 || i == 30 {
			l.SetActive(fmt.Sprint("c", i+11))
		}
	}
	// Of 40 frames and one of the looks the newest 32 are left.
	if len(dropped) != 9 || dropped[0] != `{"n":0,"type":"x"}` || dropped[8] != `{"n":8,"type":"x"}` {
		t.Fatalf("dropped %q", dropped)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, func(*leat.LiveEvent) error { return nil }) }()
	want := []string{"1 " + look}
	for i := 9; i < 40; i++ {
		want = append(want, fmt.Sprintf(`1 {"n":%d,"type":"x"}`, i))
	}
	want = append(want, "2 "+look)
	var got []string
	for range want {
		got = append(got, <-heard)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	l.SetActive("")
	if f := <-heard; f != `2 {"type":"active-conversation","conversationId":null}` {
		t.Error(f)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A connection without status frames is replaced at once.
func TestLiveSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servertest.Listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.CloseNow() }()
			_ = c.Write(context.Background(), websocket.MessageText, []byte(`{"type":"status"}`))
			_, _, _ = c.Read(context.Background()) // until the client leaves
		})}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		hc := l.Client()
		c := &leat.Client{URL: "http://localhost", HTTP: hc}
		start, statuses := time.Now(), 0
		err := c.Live(leat.LiveOptions{OnDisconnect: func(err error, next time.Duration) {
			if next != 0 || !strings.Contains(err.Error(), "no frame received for 20s") {
				t.Errorf("lost: %v; the next try in %v", err, next)
			}
		}}).Run(t.Context(), func(*leat.LiveEvent) error {
			if statuses++; statuses == 3 {
				return leat.ErrStop
			}
			return nil
		})
		if took := time.Since(start); err != nil || took != 40*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		hc.CloseIdleConnections()
		_ = srv.Close()
		<-served
	})
}

// Signals are delivered once and in order even if the network drops, stalls and resets at random bytes.
func TestLiveBadNetwork(t *testing.T) {
	const cuts = 25
	h := newLively(t)
	proxy, err := badnet.Listen(strings.TrimPrefix(h.URL, "http://"), badnet.Faults{Seed: 1, Total: cuts, MeanBytes: 4 << 10, Stall: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	h.URL = "http://" + proxy.Addr()
	hurry := make(chan struct{})
	close(hurry) // nobody waits
	n, lost := 0, 0
	l := h.Live(leat.LiveOptions{Hurry: hurry, OnDisconnect: func(error, time.Duration) { lost++ }})
	h.publish(t, 20)
	err = l.Run(t.Context(), func(e *leat.LiveEvent) error {
		if e.Type == "replay-gap" {
			t.Errorf("gap %+v", e.Gap)
		}
		if e.Signal == nil {
			return nil
		}
		if n++; e.Signal.EventID != signals.ID(int64(n)) {
			return fmt.Errorf("number %d is %s", n, e.Signal.EventID)
		}
		if n%20 != 0 {
			return nil
		}
		if proxy.Cuts() >= cuts {
			return leat.ErrStop
		}
		h.publish(t, 20)
		return nil
	})
	if err != nil || lost < cuts/4 {
		t.Errorf("%v, %d connections lost", err, lost)
	}
	h.HTTP.CloseIdleConnections()
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
}
