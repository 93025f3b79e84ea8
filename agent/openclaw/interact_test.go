package openclaw

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

func TestStop(t *testing.T) {
	bubble(t, 4, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
		h := newTurnHost(t, "hello")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(agent.ErrTurnOver) })
		if err := h.runUntil(ctx, a, nil); !errors.Is(err, agent.ErrTurnOver) {
			t.Errorf("Run returns %v", err)
		}
		if err := a.Stop(t.Context(), h.in); err != nil {
			t.Error(err)
		}
		if n := f.count("chat.abort"); n != 1 {
			t.Errorf("%d aborts", n)
		}
		if err := a.Stop(t.Context(), h.in); err != nil || f.count("chat.abort") != 1 {
			t.Error("it is aborted twice")
		}
	})
}

// A steered message is taken into the live run or answered after it. If the gateway refuses it, Steer returns
// agent.ErrNotSteered.
func TestSteer(t *testing.T) {
	for _, absorbed := range []bool{true, false} {
		bubble(t, 4, func(r *fakeRun) {
			if r.id == "turn-1.m1" {
				r.speak("1", "One.")
				r.wait(3 * time.Second)
				r.f.mu.Lock()
				next := r.steered
				r.f.mu.Unlock()
				for _, n := range next {
					if absorbed {
						n.end("final", nil)
						continue
					}
					r.f.mu.Lock()
					r.f.sessions[r.session].inFlight = n
					r.f.mu.Unlock()
					r.f.tasks.Go(func() { n.wait(time.Second); n.final("1", "Two.") })
				}
				text := "One."
				if absorbed && len(next) > 0 {
					r.speak("2", "Two.")
					text += "\n\nTwo."
				}
				r.f.mu.Lock()
				r.isOver = true
				r.f.mu.Unlock()
				r.broadcast("chat", map[string]any{"state": "final", "message": textContent(text)})
			}
		}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			in := h.in
			time.AfterFunc(time.Second, func() {
				if err := a.Steer(t.Context(), in, agent.Message{ID: "m2", Role: event.User, Text: "and two?"}); err != nil {
					t.Errorf("not steered: %v", err)
				}
				f.mu.Lock()
				f.refusals = []map[string]any{{"code": "INVALID_REQUEST", "message": "no"}}
				f.mu.Unlock()
				if err := a.Steer(t.Context(), in, agent.Message{ID: "m3", Role: event.User, Text: "three"}); !errors.Is(err, agent.ErrNotSteered) {
					t.Errorf("what was refused is %v", err)
				}
			})
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "One.\n\nTwo.")
			if err := a.Steer(t.Context(), h.in, agent.Message{ID: "m4", Text: "late"}); !errors.Is(err, agent.ErrNotSteered) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	for _, tt := range []struct {
		answer event.Decision
		want   string
	}{{event.Approve, "allow-once"}, {event.Deny, "deny"}, {"allow-always", "allow-always"}, {"elsewhere", ""}} {
		bubble(t, 4, func(r *fakeRun) {
			r.speak("1", "May I?")
			req := map[string]any{"id": "ap-1", "request": map[string]any{"command": "rm x", "sessionKey": r.session, "allowedDecisions": []string{"allow-once", "allow-always", "deny"}}}
			for c := range r.f.conns {
				if !slices.Contains(c.caps, "exec-approvals") {
					continue // it is not asked
				}
				c.event("exec.approval.requested", req)
				if tt.answer == "elsewhere" {
					r.wait(time.Second)
					c.event("exec.approval.resolved", map[string]any{"id": "ap-1", "decision": "allow-once"})
				}
			}
			r.wait(5 * time.Second)
			r.final("1", "May I? Done.")
		}, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
			h := newTurnHost(t, "hello")
			time.AfterFunc(2*time.Second, func() {
				reqs := h.turn().Requests
				if tt.answer == "elsewhere" {
					if len(reqs) != 0 {
						t.Errorf("what was answered elsewhere is still asked: %+v", reqs[0])
					}
					return
				}
				if len(reqs) != 1 || reqs[0].Prompt != "rm x" || reqs[0].Options[0] != "allow-always" {
					t.Errorf("asked: %+v", reqs)
					return
				}
				h.mu.Lock()
				h.add(event.Event{Type: event.TurnResume, Turn: h.id, Body: &event.Body{Answer: &event.Answer{ID: "ap-1", Decision: tt.answer}}})
				h.answers["ap-1"] <- event.Answer{ID: "ap-1", Decision: tt.answer}
				h.mu.Unlock()
			})
			if err := h.runUntil(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			h.checkTurn(t, event.Completed, "May I? Done.")
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.decisions["ap-1"] != tt.want {
				t.Errorf("%s: the gateway is told %q", tt.answer, f.decisions["ap-1"])
			}
		})
	}
}
