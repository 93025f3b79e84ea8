package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// Each way to refuse a connection fails the turn with the right code and message for viewers and operators, in time.
func TestRefusedConnection(t *testing.T) {
	status := func(code int, header string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(code)
		}
	}
	repeatDial := func(f *fakeGateway, d func(http.ResponseWriter)) {
		f.dials = slices.Repeat([]func(http.ResponseWriter){d}, 1000)
	}
	for _, tt := range []struct {
		name   string
		set    func(*fakeGateway)
		change func(*config)
		code   string
		words  []string
		took   time.Duration // at most
	}{
		{"nobody listens", func(f *fakeGateway) { f.down = true }, nil, codeUnreachable, []string{"connection refused"}, 61 * time.Second},
		{"401 of a proxy", func(f *fakeGateway) { repeatDial(f, status(401, "")) }, nil, codeRefused, []string{"401"}, time.Second},
		{"503", func(f *fakeGateway) { repeatDial(f, status(503, "")) }, nil, codeUnreachable, []string{"503"}, 61 * time.Second},
		{"429 with a hint", func(f *fakeGateway) { repeatDial(f, status(429, "5")) }, nil, codeUnreachable, []string{"429"}, 61 * time.Second},
		{"a wrong token", nil, func(c *config) { c.Token = "wrong" }, codeRefused, []string{"token", "mismatch"}, time.Second},
		{"no token", nil, func(c *config) { c.Token = "" }, codeRefused, []string{"OPENCLAW_TOKEN"}, time.Second},
		{"no pairing", func(f *fakeGateway) { f.isUnpaired = true }, nil, codeRefused, []string{"openclaw devices approve"}, time.Second},
		{"a protocol of its own", func(f *fakeGateway) { f.protocol = 7 }, nil, codeRefused, []string{"protocol 3 nor 4"}, time.Second},
		{"no scope", func(f *fakeGateway) { f.missesScope = true }, nil, codeRefused, []string{"operator.write", "approve"}, time.Second},
		{"garbage in place of a challenge", func(f *fakeGateway) {
			f.greetings = slices.Repeat([]func(*fakeConn){func(c *fakeConn) { c.send([]byte("hello there")) }}, 1000)
		}, nil, codeRefused, []string{"not an OpenClaw gateway"}, time.Second},
		{"another protocol's frame", func(f *fakeGateway) {
			f.greetings = slices.Repeat([]func(*fakeConn){func(c *fakeConn) { c.send(map[string]any{"type": "welcome"}) }}, 1000)
		}, nil, codeRefused, []string{"not a challenge"}, time.Second},
		{"half a frame, then nothing", func(f *fakeGateway) {
			f.greetings = slices.Repeat([]func(*fakeConn){func(c *fakeConn) {
				_, _ = c.raw.Write([]byte{0x81, 0x7e, 0x10})
				_, _, _ = c.ws.Read(context.Background()) // until the client disconnects
			}}, 1000)
		}, nil, codeUnreachable, []string{"handshake"}, 61 * time.Second},
		{"half a frame, then a reset", func(f *fakeGateway) {
			f.greetings = slices.Repeat([]func(*fakeConn){func(c *fakeConn) {
				_, _ = c.raw.Write([]byte{0x81, 0x7e, 0x10})
				_ = c.raw.Close()
			}}, 1000)
		}, nil, codeUnreachable, nil, 61 * time.Second},
		{"slow loris", func(f *fakeGateway) {
			f.greetings = slices.Repeat([]func(*fakeConn){func(c *fakeConn) {
				_, _ = c.raw.Write([]byte{0x81, 126, 0x40, 0})
				for range 100 {
					time.Sleep(time.Second)
					if _, err := c.raw.Write([]byte("x")); err != nil {
						return
					}
				}
			}}, 1000)
		}, nil, codeUnreachable, []string{"handshake"}, 61 * time.Second},
		{"the run is refused for good", func(f *fakeGateway) {
			f.refusals = []map[string]any{{"code": "INVALID_REQUEST", "message": "no such agent"}}
		}, nil, codeRequest, []string{"no such agent"}, time.Second},
		{"the run is refused for long", func(f *fakeGateway) {
			f.refusals = slices.Repeat([]map[string]any{{"code": "UNAVAILABLE", "message": "busy", "retryable": true}}, 100)
		}, nil, codeRequest, []string{"busy"}, 61 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, 4, func(r *fakeRun) { r.final("1", "Hi") })
				defer f.stop()
				if tt.set != nil {
					tt.set(f)
				}
				a := newAgent(t, f, tt.change)
				defer a.Close()
				h := newTurnHost(t, "hello")
				begin := time.Now()
				err := h.runUntil(t.Context(), a, nil)
				if err == nil {
					t.Fatal("the turn goes well")
				}
				h.checkFailure(t, tt.code)
				for _, w := range tt.words { // operators get the details
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q does not say %q", err, w)
					}
				}
				if shown := h.turn().Error.Message; strings.Contains(shown, a.host()) || strings.Contains(shown, "OPENCLAW_TOKEN") {
					t.Errorf("readers get %q", shown)
				}
				if took := time.Since(begin); took > tt.took {
					t.Errorf("it took %v", took)
				}
				if strings.Contains(err.Error(), fakeToken) {
					t.Error("the error holds the token")
				}
			})
		})
	}
}

// Without a token, the error of Check names the environment variable to set.
func TestCheckNamesTheVariable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, nil)
		defer f.stop()
		a := newAgent(t, f, func(c *config) { c.Token = "" })
		defer a.Close()
		if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "OPENCLAW_TOKEN") {
			t.Errorf("%v does not name OPENCLAW_TOKEN", err)
		}
	})
}

// A run that exceeds the size limit is stopped on both sides. Repeated text in snapshots doesn't count.
func TestFlood(t *testing.T) {
	const limit = 10_000
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, func(r *fakeRun) {
			text := strings.Repeat("All work and no play. ", 50)
			for i := range 100 {
				for n := 1; n <= 10; n++ {
					r.speak(fmt.Sprint(i), text[:n*len(text)/10])
					if !r.wait(time.Second) {
						r.end("aborted", nil)
						return
					}
				}
			}
			r.final("last", "Done.")
		})
		defer f.stop()
		a := newAgent(t, f, func(c *config) { c.limit = limit })
		defer a.Close()
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err == nil {
			t.Error("the turn goes well")
		}
		h.checkFailure(t, codeFlood, agent.ErrTooLarge.Error())
		if n := len(h.visible()); n > limit+100 || n < limit-200 {
			t.Errorf("readers see %d bytes", n)
		}
		if f.count("chat.abort") != 1 {
			t.Error("the run was not stopped")
		}
	})
}

// After temporary failures the turn is late but complete.
func TestSendRetries(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*fakeGateway)
		from time.Duration
		to   time.Duration
	}{
		{"429 with a hint", func(f *fakeGateway) {
			f.dials = []func(http.ResponseWriter){func(w http.ResponseWriter) { w.Header().Set("Retry-After", "20"); w.WriteHeader(429) }}
		}, 20 * time.Second, 22 * time.Second},
		{"429 without", func(f *fakeGateway) {
			f.dials = []func(http.ResponseWriter){func(w http.ResponseWriter) { w.WriteHeader(429) }}
		}, 0, 2 * time.Second},
		{"it is starting", func(f *fakeGateway) {
			f.greetings = []func(*fakeConn){func(c *fakeConn) {
				c.send(map[string]any{"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": "n", "ts": 1}})
				_, b, err := c.ws.Read(context.Background())
				var q fakeRequest
				if err != nil || json.Unmarshal(b, &q) != nil {
					return
				}
				c.send(map[string]any{"type": "res", "id": q.ID, "ok": false, "error": map[string]any{
					"code": "UNAVAILABLE", "message": "gateway starting", "retryAfterMs": 7000, "details": map[string]any{"reason": "startup-sidecars"},
				}})
				_ = c.ws.Close(1013, "gateway starting")
			}}
		}, 7 * time.Second, 9 * time.Second},
		{"it is lost within a message of several frames", func(f *fakeGateway) {
			f.greetings = []func(*fakeConn){func(c *fakeConn) {
				half := `{"type":"event","event":"connect.chal`
				_, _ = c.raw.Write(append([]byte{0x01, byte(len(half))}, half...))
				_ = c.raw.Close()
			}}
		}, 0, 2 * time.Second},
		{"the run is refused with a hint", func(f *fakeGateway) {
			f.refusals = []map[string]any{{"code": "UNAVAILABLE", "message": "busy", "retryable": true, "retryAfterMs": 9000}}
		}, 9 * time.Second, 11 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, 4, func(r *fakeRun) { r.final("1", "Hi") })
				defer f.stop()
				tt.set(f)
				a := newAgent(t, f, nil)
				defer a.Close()
				h := newTurnHost(t, "hello")
				begin := time.Now()
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Error(err)
				}
				h.checkTurn(t, event.Completed, "Hi")
				if took := time.Since(begin); took < tt.from || took > tt.to {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
