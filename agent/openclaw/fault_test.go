package openclaw

import (
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/event"
)

// After any fault of the connection during a run, the turn is complete and its message was sent once.
func TestFaultsInARun(t *testing.T) {
	raw := func(c *fakeConn, b string) {
		c.isStuck.Store(true)
		_, _ = c.raw.Write([]byte(b))
	}
	half := `{"type":"event","event":"agent","payl`
	for _, tt := range []struct {
		name  string
		fault func(*fakeConn)
		dials int
	}{
		{"half a frame, then a reset", func(c *fakeConn) { raw(c, "\x81\x7e\x10"); _ = c.raw.Close() }, 2},
		{"half a frame, then nothing", func(c *fakeConn) { raw(c, "\x81\x7e\x10") }, 2},
		{"half a message in a frame of its own, then a reset", func(c *fakeConn) {
			raw(c, "\x01"+string(rune(len(half)))+half)
			_ = c.raw.Close()
		}, 2},
		{"garbage in a frame", func(c *fakeConn) { c.send([]byte(`garbage {"`)) }, 1},
		{"JSON of another shape", func(c *fakeConn) { c.send([]byte(`{"type":17,"payload":[]}`)) }, 1},
		{"garbage in place of a frame", func(c *fakeConn) { raw(c, "\x7fgarbage") }, 2},
		{"slow loris", func(c *fakeConn) {
			raw(c, "\x81\x7e\x40\x00")
			c.gateway.tasks.Go(func() {
				for range 200 {
					time.Sleep(time.Second)
					if _, err := c.raw.Write([]byte("x")); err != nil {
						return
					}
				}
			})
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, 4, func(r *fakeRun) {
				r.speak("1", "Begun")
				r.f.eachConn(tt.fault)
				r.wait(3 * time.Minute)
				r.final("1", "Begun and ended.")
			}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
				h := newTurnHost(t, "hello")
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Fatal(err)
				}
				h.checkTurn(t, event.Completed, "Begun and ended.")
				if n := f.count("chat.send"); n != 1 || len(f.dialed) != tt.dials {
					t.Errorf("it was sent %d times, over %d connections, want %d", n, len(f.dialed), tt.dials)
				}
			})
		})
	}
}

// After an announced shutdown, Leat doesn't reconnect before the announced time.
func TestShutdown(t *testing.T) {
	const away = 12 * time.Second
	var left time.Time
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "Begun")
		left = time.Now()
		r.f.eachConn(func(c *fakeConn) {
			c.event("shutdown", map[string]any{"reason": "gateway restarting", "restartExpectedMs": away.Milliseconds()})
			_ = c.ws.Close(websocket.StatusServiceRestart, "service restart")
		})
		r.wait(time.Minute)
		r.final("1", "Begun and ended.")
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Begun and ended.")
		if len(f.dialed) != 2 {
			t.Fatalf("%d connections", len(f.dialed))
		}
		if after := f.dialed[1].Sub(left); after < away || after > away+time.Second {
			t.Errorf("it comes back after %v, not %v", after, away)
		}
	})
}

// A gap in the sequence numbers makes the turn read the history at once, not only at the end of the run.
func TestSequenceGap(t *testing.T) {
	var h *turnHost
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "The first half")
		r.rowText("The first half, and the second.", "toolUse")
		r.f.eachConn(func(c *fakeConn) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seq++
		})
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.wait(5 * time.Second)
		if got := h.visible(); !strings.HasPrefix(got, "The first half, and the second.") {
			t.Errorf("5 s after the gap readers see %q", got)
		}
		r.final("2", "The end.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h = newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "The first half, and the second.\n\nThe end.")
	})
}
