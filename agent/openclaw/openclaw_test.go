package openclaw

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
)

func TestAnswers(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		bubble(t, protocol, func(r *fakeRun) {
			r.agent("lifecycle", map[string]any{"phase": "start"})
			r.speak("1", "Let me")
			r.speak("1", "Let me look.")
			r.tool("call_1", "echo one", "one")
			r.final("2", "It printed one.")
		}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "Let me look.\n\nIt printed one.")
			tools := h.parts(event.KindTool)
			if len(tools) != 1 || tools[0].Text(event.Input) != `{"command":"echo one"}` || tools[0].Text(event.Output) != "one" || tools[0].State != event.PartDone {
				t.Errorf("tools: %+v", tools)
			}
			var k storedSession
			if err := json.Unmarshal(h.session, &k); err != nil || !strings.HasPrefix(k.Session, "agent:main:leat-c1-") {
				t.Errorf("kept: %s", h.session)
			}
			if u := h.turn().Upstream; u == nil || u.Run != h.in.Key+".m1" {
				t.Errorf("upstream: %+v", u)
			}
			if patched := f.count("sessions.patch") > 0; patched != (protocol == 3) {
				t.Errorf("protocol %d: sessions.patch is called: %v", protocol, patched)
			}
		})
	}
}

// Many conversations share a connection, and none gets another's text.
func TestTurnsShareConnection(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		text := "answer to " + r.params["message"].(string)
		for i := 1; i < len(text); i++ {
			r.speak("1", text[:i])
			if !r.wait(time.Millisecond) {
				return
			}
		}
		r.final("1", text)
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		a.ensureStarted()
		done := make(chan *turnHost)
		for i := range 8 {
			h := newTurnHost(t, "question "+string(rune('a'+i)))
			h.in.Conversation, h.in.Key = h.in.Message.Text[9:], "run-"+h.in.Message.Text[9:]
			h.in.Turn = h.in.Key
			go func() {
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Error(err)
				}
				done <- h
			}()
		}
		for range 8 {
			h := <-done
			h.checkTurn(t, event.Completed, "answer to "+h.in.Message.Text)
		}
		if n := f.count("chat.send"); n != 8 {
			t.Errorf("%d sends", n)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.conns) != 1 {
			t.Errorf("%d connections", len(f.conns))
		}
	})
}

// If two conversations share a session, the second turn waits for the end of the first.
func TestTurnsOfASessionRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, func(r *fakeRun) {
			r.wait(3 * time.Minute)
			r.final("1", "answer to "+r.params["message"].(string))
		})
		defer f.stop()
		a := newAgent(t, f, func(c *config) { c.Session = "everybody" })
		defer a.Close()
		done := make(chan *turnHost)
		for _, name := range []string{"a", "b"} {
			h := newTurnHost(t, name)
			h.in.Key, h.in.Turn = "run-"+name, "turn-"+name
			go func() {
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Error(err)
				}
				done <- h
			}()
		}
		for range 2 {
			h := <-done
			h.checkTurn(t, event.Completed, "answer to "+h.in.Message.Text)
		}
	})
}

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		play    func(*fakeRun)
		outcome event.Outcome
		visible string
		code    string
	}{
		{"an error", func(r *fakeRun) {
			r.speak("1", "Half")
			r.end("error", map[string]any{"errorMessage": "no quota", "errorKind": "rate_limit"})
		}, event.Failed, "Half", "rate_limit"},
		{"aborted elsewhere", func(r *fakeRun) {
			r.speak("1", "Half")
			r.end("aborted", map[string]any{"stopReason": "rpc"})
		}, event.Cancelled, "Half", ""},
		{"a terminal twice", func(r *fakeRun) {
			r.final("1", "Whole")
			r.end("error", map[string]any{"errorMessage": "late"})
		}, event.Completed, "Whole", ""},
		{"frames after the terminal", func(r *fakeRun) {
			r.final("1", "Whole")
			r.speak("1", "Whole and more")
			r.agent("lifecycle", map[string]any{"phase": "error", "error": "late"})
		}, event.Completed, "Whole", ""},
		{"a text that is taken back", func(r *fakeRun) {
			r.speak("1", "Wrong")
			r.agent("assistant", map[string]any{"text": "", "delta": "", "replace": true, "itemId": r.id + ":1"})
			r.final("2", "Right")
		}, event.Completed, "Right", ""},
		{"the tail comes with the final alone", func(r *fakeRun) {
			r.speak("1", "The beg")
			r.end("final", map[string]any{"message": textContent("The beginning and the end.")})
		}, event.Completed, "The beginning and the end.", ""},
		{"a text before a tool of which only a preamble tells", func(r *fakeRun) {
			r.agent("item", map[string]any{"kind": "preamble", "phase": "end", "itemId": "commentary-1", "progressText": "First."})
			r.tool("c1", "echo", "x")
			r.rowText("First.", "toolUse")
			r.final("2", "Last.")
		}, event.Completed, "First.\n\nLast.", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, 4, tt.play, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
				h := newTurnHost(t, "hello")
				_ = h.runUntil(t.Context(), a, nil)
				h.checkTurn(t, tt.outcome, tt.visible)
				if e := h.turn().Error; tt.code != "" && (e == nil || e.Code != tt.code) {
					t.Errorf("error %+v, want %s", e, tt.code)
				}
			})
		})
	}
}
