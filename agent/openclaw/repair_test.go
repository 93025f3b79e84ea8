package openclaw

import (
	"fmt"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
)

// runWithGap plays a run with reasoning, a tool and two texts, and writes its rows as a real gateway does.
func runWithGap(r *fakeRun) {
	r.speak("1", "Let me")
	if !r.wait(200 * time.Millisecond) {
		return
	}
	r.speak("1", "Let me look.")
	r.addRows(map[string]any{"role": "assistant", "stopReason": "toolUse", "content": []any{
		map[string]any{"type": "thinking", "thinking": "I had better look."},
		map[string]any{"type": "text", "text": "Let me look."},
		map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}},
	}})
	if !r.wait(2 * time.Second) {
		return
	}
	r.tool("c1", "ls", "a file")
	result := textContent("a file")
	result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
	r.addRows(result)
	r.speak("2", "There is")
	if !r.wait(2 * time.Second) {
		return
	}
	r.final("2", "There is a file.")
}

// A snapshot of the beginning of a text may arrive after a history with the whole text. The text is shown once.
func TestLateSnapshot(t *testing.T) {
	bubble(t, numberedProtocol, func(r *fakeRun) {
		row := textContent("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		r.addRows(row)
		r.f.dropConnections()
		r.wait(10 * time.Second)
		r.speak("1", "Let me")
		r.wait(100 * time.Millisecond)
		r.speak("1", "Let me look.")
		r.tool("c1", "ls", "a file")
		result := textContent("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.addRows(result)
		r.final("2", "Let me see.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nLet me see.")
		h.checkOrder(t, "text Let me look.", "tool a file", "text Let me see.")
	})
}

// The connection is lost before, during or after a tool, or Leat is killed. Everything in the run is shown once, in order.
// Before protocol 4 only the history has the tool and the reasoning.
func TestLookUpRestoresMissedParts(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		for _, after := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
			check := func(t *testing.T, h *turnHost) {
				t.Helper()
				h.checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
				if after < time.Second {
					h.checkOrder(t, "text Let me look.", "reasoning I had better look.", "tool a file", "text There is a file.")
				}
				if tools, thoughts := h.parts(event.KindTool), h.parts(event.KindReasoning); len(tools) != 1 || tools[0].Text(event.Output) != "a file" || len(thoughts) != 1 {
					t.Errorf("%d tools and %d thoughts are shown", len(tools), len(thoughts))
				}
			}
			t.Run(fmt.Sprintf("protocol %d: cut after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
					h := newTurnHost(t, "hello")
					time.AfterFunc(after, f.dropConnections)
					if err := h.runUntil(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					check(t, h)
				})
			})
			t.Run(fmt.Sprintf("protocol %d: killed after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
					h := newTurnHost(t, "hello")
					die := make(chan struct{})
					time.AfterFunc(after, func() { close(die) })
					if err := h.runUntil(t.Context(), a, die); err == nil {
						t.Fatal("it was not killed")
					}
					f.dropConnections()
					if err := h.runUntil(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					check(t, h)
				})
			})
		}
	}
}

// Before protocol 4 the gateway sends a final frame even if the model failed. The history shows the failure.
func TestModelFailsMidAnswer(t *testing.T) {
	bubble(t, 3, func(r *fakeRun) {
		r.speak("1", "Half of")
		row := textContent("Half of ")
		row["role"], row["stopReason"], row["errorMessage"] = "assistant", "error", "terminated"
		r.addRows(row)
		r.end("final", map[string]any{"message": textContent("Half of")})
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		_ = h.runUntil(t.Context(), a, nil)
		h.checkTurn(t, event.Failed, "Half of")
		if e := h.turn().Error; e == nil || e.Message != "terminated" {
			t.Errorf("error %+v", e)
		}
	})
}

// The gateway retracts a text while a history is being read. No history repeats the retraction, so its frame must not be
// dropped.
func TestRetractionAcrossReconnect(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "It begins")
		r.wait(time.Second)
		asked := false
		r.f.mu.Lock()
		r.f.onHistory = func() {
			if asked {
				return
			}
			asked = true
			r.agent("assistant", map[string]any{"text": "", "delta": "", "replace": true, "itemId": r.id + ":1"})
			r.speak("2", "It begins")
		}
		r.owner.mu.Lock()
		r.owner.seq += 5 // frames are missing
		r.owner.mu.Unlock()
		r.f.mu.Unlock()
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.wait(time.Second)
		r.final("2", "It begins again.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "It begins again.")
	})
}

// The connection is lost repeatedly while the history of an ended run is read. The run ends once the history was read, because
// only the history has the input of its tool.
func TestDisconnectBeforeEnd(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "Let me look.")
		r.wait(time.Second)
		r.f.dropConnections() // on the next connection, its tools have no input
		r.wait(5 * time.Second)
		cuts := 0
		r.f.mu.Lock()
		r.f.onHistory = func() {
			if cuts++; cuts <= 3 {
				r.f.dropConnections()
			}
		}
		r.f.mu.Unlock()
		row := textContent("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		result := textContent("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.addRows(row, result)
		r.tool("c1", "ls", "a file")
		r.final("2", "That is all.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nThat is all.")
		if tools := h.parts(event.KindTool); len(tools) != 1 || tools[0].Text(event.Input) != `{"command":"ls"}` || tools[0].Text(event.Output) != "a file" {
			t.Errorf("tools: %+v", tools)
		}
	})
}

// If the gateway goes away for good right after the end of a run, the turn is still completed.
func TestGatewayDownAtEnd(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		bubble(t, protocol, func(r *fakeRun) {
			r.f.mu.Lock()
			r.f.onHistory = r.f.crash
			r.f.mu.Unlock()
			r.final("1", "That is all.")
		}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			begin := time.Now()
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "That is all.")
			if took := time.Since(begin); took > 2*restartGrace {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// The connection is lost while the history is read after a reconnect. Frames that arrived before are not shown in front of what
// the history has.
func TestDisconnectDuringHistory(t *testing.T) {
	speakAndCall := func(r *fakeRun, text, call string) {
		row := textContent(text)
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": call, "name": "exec", "arguments": map[string]any{"command": call}})
		result := textContent(call + " ran")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", call, "exec"
		r.addRows(row, result)
	}
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "First.")
		speakAndCall(r, "First.", "c1")
		r.wait(time.Second)
		r.f.dropConnections()
		speakAndCall(r, "Second.", "c2")
		asked := false
		r.f.mu.Lock()
		r.f.onHistory = func() {
			if asked {
				return
			}
			asked = true
			r.speak("3", "Last, ")
			r.f.dropConnections()
		}
		r.f.mu.Unlock()
		r.wait(10 * time.Second)
		r.final("3", "Last, and over.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "First.\n\nSecond.\n\nLast, and over.")
		h.checkOrder(t, "text First.", "tool c1 ran", "text Second.", "tool c2 ran", "text Last, and over.")
	})
}

// A text ends while Leat is disconnected, and the history doesn't have it yet. It is shown before the tool that follows it.
func TestTextBeforeTool(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.wait(time.Second)
		r.f.dropConnections()
		r.speak("1", "Let me look.")
		r.wait(10 * time.Second)
		row := textContent("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		r.addRows(row)
		r.tool("c1", "ls", "a file")
		result := textContent("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.addRows(result)
		r.final("2", "That is all.")
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkOrder(t, "text Let me look.", "tool a file", "text That is all.")
	})
}

// If the gateway goes away for good while its history is read, the frames that arrived before are still shown.
func TestGatewayDownDuringHistory(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.speak("1", "It begins.")
		r.wait(time.Second)
		r.f.dropConnections()
		r.f.mu.Lock()
		r.f.onHistory = func() {
			r.speak("1", "It begins. And")
			r.f.crash()
		}
		r.f.mu.Unlock()
		r.wait(time.Minute)
	}, func(t *testing.T, _ *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		_ = h.runUntil(t.Context(), a, nil)
		h.checkFailure(t, codeRestarted)
		if got := h.visible(); got != "It begins. And" {
			t.Errorf("readers see %q", got)
		}
	})
}
