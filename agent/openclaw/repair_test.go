package openclaw

import (
	"fmt"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
)

// works plays a run with reasoning, a tool and two texts, and writes its rows as a gateway does.
func works(r *fakeRun) {
	r.say("1", "Let me")
	if !r.wait(200 * time.Millisecond) {
		return
	}
	r.say("1", "Let me look.")
	r.write(map[string]any{"role": "assistant", "stopReason": "toolUse", "content": []any{
		map[string]any{"type": "thinking", "thinking": "I had better look."},
		map[string]any{"type": "text", "text": "Let me look."},
		map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}},
	}})
	if !r.wait(2 * time.Second) {
		return
	}
	r.tool("c1", "ls", "a file")
	result := content1("a file")
	result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
	r.write(result)
	r.say("2", "There is")
	if !r.wait(2 * time.Second) {
		return
	}
	r.final("2", "There is a file.")
}

// A snapshot of the beginning of a text may come after a history that has the whole of it. The text is shown once.
func TestLateSnapshot(t *testing.T) {
	bubble(t, numbered, func(r *fakeRun) {
		row := content1("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		r.write(row)
		r.f.cut()
		r.wait(10 * time.Second)
		r.say("1", "Let me")
		r.wait(100 * time.Millisecond)
		r.say("1", "Let me look.")
		r.tool("c1", "ls", "a file")
		result := content1("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.write(result)
		r.final("2", "Let me see.")
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, event.Completed, "Let me look.\n\nLet me see.")
		h.ordered(t, "text Let me look.", "tool a file", "text Let me see.")
	})
}

// The connection is lost before, during or after a tool, or Leat is killed: all that the run says and does is shown once, in order.
// Before protocol 4 the tool and the reasoning are in the history only.
func TestRepair(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		for _, after := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
			check := func(t *testing.T, h *house) {
				t.Helper()
				h.want(t, event.Completed, "Let me look.\n\nThere is a file.")
				if after < time.Second {
					h.ordered(t, "text Let me look.", "reasoning I had better look.", "tool a file", "text There is a file.")
				}
				if tools, thoughts := h.parts(event.KindTool), h.parts(event.KindReasoning); len(tools) != 1 || tools[0].Text(event.Output) != "a file" || len(thoughts) != 1 {
					t.Errorf("%d tools and %d thoughts are shown", len(tools), len(thoughts))
				}
			}
			t.Run(fmt.Sprintf("protocol %d: cut after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, works, func(t *testing.T, f *fake, a *Agent) {
					h := newHouse(t, "hello")
					time.AfterFunc(after, f.cut)
					if err := h.life(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					check(t, h)
				})
			})
			t.Run(fmt.Sprintf("protocol %d: killed after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, works, func(t *testing.T, f *fake, a *Agent) {
					h := newHouse(t, "hello")
					die := make(chan struct{})
					time.AfterFunc(after, func() { close(die) })
					if err := h.life(t.Context(), a, die); err == nil {
						t.Fatal("it was not killed")
					}
					f.cut()
					if err := h.life(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					check(t, h)
				})
			})
		}
	}
}

// Before protocol 4 the gateway ends a run with a final although its model broke off. Its history says so.
func TestModelBreaksOff(t *testing.T) {
	bubble(t, 3, func(r *fakeRun) {
		r.say("1", "Half of")
		row := content1("Half of ")
		row["role"], row["stopReason"], row["errorMessage"] = "assistant", "error", "terminated"
		r.write(row)
		r.end("final", map[string]any{"message": content1("Half of")})
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		_ = h.life(t.Context(), a, nil)
		h.want(t, event.Failed, "Half of")
		if e := h.turn().Error; e == nil || e.Message != "terminated" {
			t.Errorf("error %+v", e)
		}
	})
}

// The gateway takes a text back while a history is on its way. No history repeats that.
func TestRetractedMeanwhile(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.say("1", "It begins")
		r.wait(time.Second)
		asked := false
		r.f.mu.Lock()
		r.f.asked = func() {
			if asked {
				return
			}
			asked = true
			r.agent("assistant", map[string]any{"text": "", "delta": "", "replace": true, "itemId": r.id + ":1"})
			r.say("2", "It begins")
		}
		r.owner.mu.Lock()
		r.owner.seq += 5 // frames are missing
		r.owner.mu.Unlock()
		r.f.mu.Unlock()
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.wait(time.Second)
		r.final("2", "It begins again.")
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, event.Completed, "It begins again.")
	})
}

// The connection is cut again and again while the history of a run that has ended is read: the run ends once it was read, since the
// history alone has the input of its tool.
func TestCutAtItsEnd(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.say("1", "Let me look.")
		r.wait(time.Second)
		r.f.cut() // from now on its tools come without their input
		r.wait(5 * time.Second)
		cuts := 0
		r.f.mu.Lock()
		r.f.asked = func() {
			if cuts++; cuts <= 3 {
				r.f.cut()
			}
		}
		r.f.mu.Unlock()
		row := content1("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		result := content1("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.write(row, result)
		r.tool("c1", "ls", "a file")
		r.final("2", "That is all.")
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, event.Completed, "Let me look.\n\nThat is all.")
		if tools := h.parts(event.KindTool); len(tools) != 1 || tools[0].Text(event.Input) != `{"command":"ls"}` || tools[0].Text(event.Output) != "a file" {
			t.Errorf("tools: %+v", tools)
		}
	})
}

// A gateway that goes away for good right after a run's end leaves a complete turn.
func TestGoneAtItsEnd(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		bubble(t, protocol, func(r *fakeRun) {
			r.f.mu.Lock()
			r.f.asked = r.f.kill
			r.f.mu.Unlock()
			r.final("1", "That is all.")
		}, func(t *testing.T, _ *fake, a *Agent) {
			h := newHouse(t, "hello")
			begin := time.Now()
			if err := h.life(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.want(t, event.Completed, "That is all.")
			if took := time.Since(begin); took > 2*grace {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// The connection is cut while the history is read with which it is followed anew. What came over it until then does not stand before
// what the history has.
func TestCutAtItsHistory(t *testing.T) {
	says := func(r *fakeRun, text, call string) {
		row := content1(text)
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": call, "name": "exec", "arguments": map[string]any{"command": call}})
		result := content1(call + " ran")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", call, "exec"
		r.write(row, result)
	}
	bubble(t, 4, func(r *fakeRun) {
		r.say("1", "First.")
		says(r, "First.", "c1")
		r.wait(time.Second)
		r.f.cut()
		says(r, "Second.", "c2")
		asked := false
		r.f.mu.Lock()
		r.f.asked = func() {
			if asked {
				return
			}
			asked = true
			r.say("3", "Last, ")
			r.f.cut()
		}
		r.f.mu.Unlock()
		r.wait(10 * time.Second)
		r.final("3", "Last, and over.")
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, event.Completed, "First.\n\nSecond.\n\nLast, and over.")
		h.ordered(t, "text First.", "tool c1 ran", "text Second.", "tool c2 ran", "text Last, and over.")
	})
}

// A text ends while the connection is away, and is not in the history yet when that is read. It stands before the tool that follows it.
func TestTextBeforeATool(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.agent("lifecycle", map[string]any{"phase": "start"})
		r.wait(time.Second)
		r.f.cut()
		r.say("1", "Let me look.")
		r.wait(10 * time.Second)
		row := content1("Let me look.")
		row["role"], row["stopReason"] = "assistant", "toolUse"
		row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
		r.write(row)
		r.tool("c1", "ls", "a file")
		result := content1("a file")
		result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
		r.write(result)
		r.final("2", "That is all.")
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.ordered(t, "text Let me look.", "tool a file", "text That is all.")
	})
}

// A gateway that goes away for good while its history is read: what came over the last connection is shown all the same.
func TestGoneAtItsHistory(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) {
		r.say("1", "It begins.")
		r.wait(time.Second)
		r.f.cut()
		r.f.mu.Lock()
		r.f.asked = func() {
			r.say("1", "It begins. And")
			r.f.kill()
		}
		r.f.mu.Unlock()
		r.wait(time.Minute)
	}, func(t *testing.T, _ *fake, a *Agent) {
		h := newHouse(t, "hello")
		_ = h.life(t.Context(), a, nil)
		h.failed(t, codeRestarted)
		if got := h.visible(); got != "It begins. And" {
			t.Errorf("readers see %q", got)
		}
	})
}
