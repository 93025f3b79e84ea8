package openclaw

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// An observed run fails because OpenClaw is away for too long. Its later answer is shown as a separate turn.
func TestUnfinishedObserved(t *testing.T) {
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprintf("killed: %v", killed), func(t *testing.T) {
			followSession(t, func(r *fakeRun) {
				r.speak("1", "Let me")
				if r.wait(time.Minute) {
					r.final("1", "Let me look.")
				}
			}, func(t *testing.T, f *fakeGateway, _ *gatewayAgent, c *conversations, again func()) {
				f.addPrompt("r1", "one?")
				time.Sleep(time.Second)
				key, text := "r1~later", "Let me look."
				if killed {
					key, text = "recovery-run", "All of it."
					f.crash()
				} else {
					f.mu.Lock()
					f.down = true
					f.mu.Unlock()
					f.dropConnections()
				}
				time.Sleep(2 * returnLimit)
				c.run("r1").checkTurn(t, event.Failed, "Let me")
				if killed {
					f.beginRecovery(theirs, continueRun)
				}
				f.restart()
				time.Sleep(5 * time.Minute)
				if later := c.run(key); later != nil {
					later.checkTurn(t, event.Completed, text)
				} else {
					t.Error("what it continues is not shown")
				}
				again()
				f.addNote("a note")
				time.Sleep(time.Minute)
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.shown) != 4 {
					t.Errorf("shown %q", c.shown)
				}
			})
		})
	}
}

// continueRun plays the run with which a restarted gateway continues.
func continueRun(r *fakeRun) {
	row := r.userRow(r.id)
	row["provenance"] = map[string]any{"sourceTool": recoveryTool}
	r.addRows(row)
	r.wait(time.Second)
	r.final("1", "All of it.")
}

// A turn fails while OpenClaw is away. Its later answer is shown as a separate turn that answers the same message: the run with
// which a restarted OpenClaw continues, or the whole run if it ended meanwhile. The failed turn is not shown again.
func TestUnfinished(t *testing.T) {
	const turn = "019aab00-0000-7000-8000-000000000001"
	for _, tt := range []struct {
		name    string
		killed  bool // OpenClaw continues in another run, or else in the same
		silence bool // the gateway ends the turn, or else the agent
		restart bool // Leat restarts meanwhile
		key     string
		text    string
	}{
		{"killed, too long away", true, false, false, "recovery-run", "All of it."},
		{"killed, too long silent", true, true, false, "recovery-run", "All of it."},
		{"killed, too long silent, restarted", true, true, true, "recovery-run", "All of it."},
		{"not reached, too long silent", false, true, false, turn + ".m1", "Let me look."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			followSession(t, func(r *fakeRun) {
				r.speak("1", "Let me")
				if r.wait(time.Minute) {
					r.final("1", "Let me look.")
				}
			}, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, again func()) {
				c.mu.Lock()
				c.own = []string{turn, "m1"}
				c.mu.Unlock()
				h := newTurnHost(t, "hello")
				h.id, h.in.Conversation, h.in.Turn, h.in.Key, h.session = turn, "C1", turn, turn, c.kept
				h.mapper = dialect.NewMapper(h.id, h.newID)
				h.add(event.Event{Type: event.TurnStart, Turn: h.id, Body: &event.Body{Agent: "claw"}})
				time.AfterFunc(time.Second, func() {
					if tt.killed {
						f.crash()
						return
					}
					f.mu.Lock()
					f.down = true
					f.mu.Unlock()
					f.dropConnections()
				})
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				if tt.silence {
					time.AfterFunc(2*time.Minute, func() { end(agent.ErrTurnOver) })
				}
				if err := h.runUntil(ctx, a, nil); err == nil {
					t.Fatal("it does not fail")
				}
				if tt.silence {
					limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					if err := a.Stop(limited, h.in); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("stop: %v", err)
					}
				}
				time.Sleep(time.Minute)
				if tt.restart {
					again()
				}
				if tt.killed {
					f.beginRecovery(theirs, continueRun)
				}
				f.restart()
				time.Sleep(5 * time.Minute)
				later := c.run(tt.key)
				if later == nil {
					c.mu.Lock()
					defer c.mu.Unlock()
					t.Fatalf("what it continues is not shown: %q", c.shown)
				}
				later.checkTurn(t, event.Completed, tt.text)
				again()
				f.addNote("a note")
				time.Sleep(time.Minute)
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.shown) != 2 || c.shown[0] != "run m1 live" && c.shown[0] != "run m1 whole" {
					t.Errorf("shown %q", c.shown)
				}
			})
		})
	}
}
