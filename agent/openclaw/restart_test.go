package openclaw

import (
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
)

const story = "Once there was a fox who jumped over a dog, and nobody knew why."

// streamSlowly streams the story word by word, one per second.
func streamSlowly(r *fakeRun, item string) bool {
	words := strings.SplitAfter(story, " ")
	for i := range words[:len(words)-1] {
		r.speak(item, strings.Join(words[:i+1], ""))
		if !r.wait(time.Second) {
			return false
		}
	}
	r.final(item, story)
	return true
}

// A run continues over the next connection after a disconnect, without duplicates.
func TestDisconnect(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		go func() {
			for range 3 {
				time.Sleep(3 * time.Second)
				f.dropConnections()
			}
		}()
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, story)
		if n := f.count("chat.send"); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

// Everything in a run that ended while Leat was disconnected is added, in order.
func TestEndWhileDisconnected(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		bubble(t, protocol, func(r *fakeRun) {
			r.speak("1", "First")
			r.wait(2 * time.Second)
			r.rowText("First segment.", "toolUse")
			row := map[string]any{"role": "assistant", "stopReason": "toolUse", "content": []any{
				map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "echo"}},
			}}
			r.addRows(row, map[string]any{"role": "toolResult", "toolCallId": "c1", "toolName": "exec", "content": []any{map[string]any{"type": "text", "text": "out"}}})
			r.final("2", "Second segment.")
		}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			die := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(die) })
			_ = h.runUntil(t.Context(), a, die)
			if got := h.visible(); got != "First" {
				t.Fatalf("before it is killed readers see %q", got)
			}
			a.Close()
			time.Sleep(10 * time.Second)
			b := newAgent(t, f, nil)
			defer b.Close()
			if err := h.runUntil(t.Context(), b, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "First segment.\n\nSecond segment.")
			if tools := h.parts(event.KindTool); len(tools) != 1 || tools[0].Text(event.Output) != "out" || tools[0].State != event.PartDone {
				t.Errorf("tools: %+v", tools)
			}
		})
	}
}

// Leat is killed at any point of a run. After the resume, viewers have the whole text once.
func TestResume(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		for at := range 14 {
			bubble(t, protocol, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
				h := newTurnHost(t, "hello")
				die := make(chan struct{})
				time.AfterFunc(time.Duration(at)*time.Second+500*time.Millisecond, func() { close(die) })
				_ = h.runUntil(t.Context(), a, die)
				a.Close()
				b := newAgent(t, f, nil)
				defer b.Close()
				if err := h.runUntil(t.Context(), b, nil); err != nil {
					t.Fatalf("killed after %d s: %v", at, err)
				}
				h.checkTurn(t, event.Completed, story)
				if n := f.count("chat.send"); n != 1 {
					t.Errorf("killed after %d s: it was sent %d times", at, n)
				}
			})
		}
	}
}

// A restarted gateway of protocol 4 continues an interrupted run as a new run. The turn follows it, also if it ended before
// Leat reconnected.
func TestGatewayRestart(t *testing.T) {
	for _, quick := range []bool{false, true} {
		bubble(t, 4, func(r *fakeRun) {
			if quick && r.id == "next-run" {
				r.final("1", story)
				return
			}
			streamSlowly(r, "1")
		}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			time.AfterFunc(3500*time.Millisecond, func() {
				f.crash()
				time.Sleep(20 * time.Second)
				f.restart()
				f.mu.Lock()
				defer f.mu.Unlock()
				for key, s := range f.sessions {
					if _, rerr := f.begin(nil, key, "[System] Your previous turn was interrupted", "next-run", "", nil); rerr != nil {
						t.Error(rerr)
					}
					s.rows[len(s.rows)-1]["provenance"] = map[string]any{"kind": "internal_system", "sourceTool": recoveryTool}
				}
			})
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "Once there was a \n\n"+story)
			if u := h.turn().Upstream; u.Run != "next-run" {
				t.Errorf("upstream is %+v", u)
			}
		})
	}
}

// If a restarted gateway doesn't continue the run, the turn is interrupted and keeps its text.
func TestRunLost(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		bubble(t, protocol, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			time.AfterFunc(3500*time.Millisecond, func() {
				f.crash()
				time.Sleep(20 * time.Second)
				f.restart()
			})
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			if got := h.visible(); h.turn().Outcome != event.Interrupted || strings.TrimSpace(got) != "Once there was a" {
				t.Errorf("protocol %d: %s, %q", protocol, h.turn().Outcome, got)
			}
			if n := f.count("chat.send"); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// If the gateway is killed and stays down, the turn fails.
func TestGatewayStaysDown(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		begin := time.Now()
		time.AfterFunc(3500*time.Millisecond, f.crash)
		if err := h.runUntil(t.Context(), a, nil); err == nil {
			t.Error("the turn goes well")
		}
		h.checkFailure(t, codeRestarted, "did not come back")
		if took := time.Since(begin); took < returnLimit || took > returnLimit+time.Minute {
			t.Errorf("it took %v", took)
		}
		if got := h.visible(); got != "Once there was a " {
			t.Errorf("readers see %q", got)
		}
	})
}

// If the connection is lost before the gateway accepts the message, it is sent again under the same key.
func TestLostAnswerToSend(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) { r.final("1", "Hi") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		f.refusals = []map[string]any{nil}
		f.mu.Lock()
		f.greetings = []func(*fakeConn){func(c *fakeConn) {
			f.mu.Lock()
			f.refusals = nil
			f.mu.Unlock()
			c.loseAnswerOf("chat.send")
		}}
		f.mu.Unlock()
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Hi")
		if len(h.sent) != 2 || !strings.Contains(h.sent[1], `"idempotencyKey":"turn-1.m1"`) {
			t.Errorf("sent: %q", h.sent)
		}
	})
}

// A gateway without frames for two ticks is disconnected, and the run is found on the next connection.
func TestSilence(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "Begun")
		r.wait(2 * time.Minute)
		r.final("1", "Begun and ended.")
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		f.mu.Lock()
		f.greetings = []func(*fakeConn){func(c *fakeConn) { c.mute() }}
		f.mu.Unlock()
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Begun and ended.")
	})
}
