package openclaw

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

const theirs = "agent:main:theirs"

// startBehindOther starts a run of another client in the session, and returns a turn that is queued behind it.
func startBehindOther(t *testing.T, f *fakeGateway) *turnHost {
	t.Helper()
	h := newTurnHost(t, "hello")
	h.session = json.RawMessage(`{"session":"` + theirs + `"}`)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, rerr := f.begin(nil, theirs, "their question", "their-run", "", nil); rerr != nil {
		t.Error(rerr)
	}
	return h
}

// answerMessage plays the other client's run, and then the one that answers the turn.
func answerMessage(r *fakeRun) {
	if r.params["message"] == "their question" {
		for i := range 400 { // more than maxStrays
			r.speak("1", strings.Repeat("Theirs. ", i+1))
			if !r.wait(10 * time.Millisecond) {
				return
			}
		}
		r.tool("t1", "theirs", "theirs")
		r.final("2", "All theirs.")
		return
	}
	r.speak("1", "Let me")
	r.wait(100 * time.Millisecond)
	r.speak("1", "Let me look.")
	row := textContent("Let me look.")
	row["role"], row["stopReason"] = "assistant", "toolUse"
	row["content"] = append(row["content"].([]any), map[string]any{"type": "toolCall", "id": "c1", "name": "exec", "arguments": map[string]any{"command": "ls"}})
	r.addRows(row)
	r.tool("c1", "ls", "a file")
	result := textContent("a file")
	result["role"], result["toolCallId"], result["toolName"] = "toolResult", "c1", "exec"
	r.addRows(result)
	r.wait(time.Second)
	r.final("2", "Yours.")
}

// While another client's run occupies the session, a turn's message is answered later, by a run with another id. That run is
// shown with its tools; nothing of the other client's run is.
func TestTurnWaitsForAnotherClient(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		t.Run(fmt.Sprint("protocol ", protocol), func(t *testing.T) {
			bubble(t, protocol, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
				h := startBehindOther(t, f)
				if err := h.runUntil(t.Context(), a, nil); err != nil {
					t.Fatal(err)
				}
				h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
				h.checkOrder(t, "text Let me look.", "tool a file", "text Yours.")
				if n := f.count("chat.send"); n != 1 {
					t.Errorf("the message is sent %d times", n)
				}
			})
		})
	}
}

// The same with disconnects, restarts and gaps meanwhile.
func TestTurnWaitsThroughFaults(t *testing.T) {
	for _, protocol := range []int{3, 4} {
		for _, after := range []time.Duration{20 * time.Millisecond, time.Second, 4300 * time.Millisecond, 4600 * time.Millisecond} {
			t.Run(fmt.Sprintf("protocol %d: cut after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
					h := startBehindOther(t, f)
					cut := time.AfterFunc(after, f.dropConnections)
					defer cut.Stop()
					if err := h.runUntil(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
					h.checkOrder(t, "text Let me look.", "tool a file", "text Yours.")
				})
			})
			t.Run(fmt.Sprintf("protocol %d: killed after %s", protocol, after), func(t *testing.T) {
				bubble(t, protocol, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
					h := startBehindOther(t, f)
					die := make(chan struct{})
					kill := time.AfterFunc(after, func() { close(die) })
					defer kill.Stop()
					if err := h.runUntil(t.Context(), a, die); err == nil {
						t.Fatal("it was not killed")
					}
					if err := h.runUntil(t.Context(), a, nil); err != nil {
						t.Fatal(err)
					}
					h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
					h.checkOrder(t, "text Let me look.", "tool a file", "text Yours.")
				})
			})
		}
	}
}

// A history may lack rows that were written while it was read. Its run in progress then answers a message after the turn's own.
func TestQueuedMessageAndStaleHistory(t *testing.T) {
	bubble(t, numberedProtocol, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := startBehindOther(t, f)
		time.AfterFunc(2*time.Second, func() { // the message is queued
			f.mu.Lock()
			f.down = true
			f.mu.Unlock()
			f.dropConnections()
		})
		time.AfterFunc(20*time.Second, func() { // it was answered
			f.mu.Lock()
			f.rowLimits = []int{3} // the other client's message, its answer, and the turn's message
			f.onHistory = sync.OnceFunc(func() { f.addPrompt("later-run", "their question") })
			f.mu.Unlock()
			f.restart()
		})
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
		h.checkOrder(t, "text Let me look.", "tool a file", "text Yours.")
	})
}

// The same for the run with which a restarted gateway continues the turn.
func TestRecoveryAndStaleHistory(t *testing.T) {
	bubble(t, numberedProtocol, func(r *fakeRun) {
		if r.params["message"] == "their question" {
			answerMessage(r)
			return
		}
		r.speak("1", "Let me")
		r.wait(time.Minute) // the gateway is killed
	}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		h.session = json.RawMessage(`{"session":"` + theirs + `"}`)
		time.AfterFunc(time.Second, func() {
			f.crash()
			f.beginRecovery(theirs, func(r *fakeRun) {
				row := r.userRow(r.id)
				row["provenance"] = map[string]any{"sourceTool": recoveryTool}
				r.addRows(row)
				r.final("1", "All of it.")
			})
		})
		time.AfterFunc(10*time.Second, func() { // the turn was continued
			f.mu.Lock()
			f.rowLimits = []int{1}
			f.onHistory = sync.OnceFunc(func() { f.addPrompt("later-run", "their question") })
			f.mu.Unlock()
			f.restart()
		})
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me\n\nAll of it.")
	})
}

// A message is not steered into another client's run.
func TestSteerWhileQueued(t *testing.T) {
	bubble(t, 4, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := startBehindOther(t, f)
		steered := make(chan error, 1)
		time.AfterFunc(time.Second, func() {
			steered <- a.Steer(t.Context(), h.in, agent.Message{ID: "m2", Role: event.User, Text: "and this"})
		})
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-steered; err == nil {
			t.Error("a message is steered into another client's run")
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
	})
}

// The gateway is killed while the message is queued in it: it continues the other client's run and refuses the message under
// its old id. The message is sent under a new id and answered once.
func TestCrashWhileQueued(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Millisecond, time.Second} { // before and after Leat knows that the message is queued
		t.Run(after.String(), func(t *testing.T) { crashWhileQueued(t, after) })
	}
}

func crashWhileQueued(t *testing.T, after time.Duration) {
	t.Helper()
	bubble(t, 4, answerMessage, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := startBehindOther(t, f)
		time.AfterFunc(after, func() {
			f.crash()
			f.restart()
			f.beginRecovery(theirs, func(r *fakeRun) {
				r.wait(5 * time.Second) // it runs before its message is written
				row := r.userRow(r.id)
				row["provenance"] = map[string]any{"sourceTool": recoveryTool}
				r.addRows(row)
				r.final("1", "All theirs.")
			})
		})
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Let me look.\n\nYours.")
		if n := f.count("chat.send"); n != 3 {
			t.Errorf("the message is sent %d times", n)
		}
	})
}

// The ids under which a message is sent again contain its turn and its own id, as the first one does.
func TestNextID(t *testing.T) {
	const turn, message = "01a20458-bc3a-76be-9345-f9f741882d40", "m~2.b"
	id := turn + "." + message
	for n := 2; n <= maxSends; n++ {
		var ok bool
		if id, ok = nextID(id); !ok || id != fmt.Sprintf("%s~%d.%s", turn, n, message) {
			t.Fatalf("id %d is %q", n, id)
		}
		if gotTurn, gotMessage, ok := parseRunID(id); gotTurn != turn || gotMessage != message || !ok {
			t.Errorf("%s names %q and %q", id, gotTurn, gotMessage)
		}
	}
	if id, ok := nextID(id); ok {
		t.Errorf("it is sent once more, under %s", id)
	}
}
