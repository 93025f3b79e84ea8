package gateway_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// endless makes progress every minute and never ends.
func endless(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	for {
		if err := out.Text("."); err != nil {
			return err
		}
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func limited(d time.Duration) func(*gateway.Config) {
	return func(c *gateway.Config) { c.TurnLimit = d }
}

func wantRan(t *testing.T, turn *transcript.Turn, want time.Duration) {
	t.Helper()
	if got := time.Duration(turn.EndedAt-turn.StartedAt) * time.Millisecond; got.Round(time.Second) != want {
		t.Errorf("the turn ended after %v, want %v", got, want)
	}
}

func TestATurnThatNeverEndsFails(t *testing.T) {
	for name, tt := range map[string]struct{ limit, want time.Duration }{"default": {0, 24 * time.Hour}, "two hours": {2 * time.Hour, 2 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(agentFunc(endless)), limited(tt.limit))
				defer h.close()
				c := h.create(admin)
				id := h.send(c, "go").Turn
				time.Sleep(tt.want)
				turn := h.ended(c, id)
				wantOutcome(t, turn, event.Failed, "turn_limit")
				wantRan(t, turn, tt.want)
			})
		})
	}
}

// The limit counts from a turn's start; one that waits in the queue has not started.
func TestTheTurnLimitIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(endless)), limited(-1))
		c := h.create(admin)
		free := h.send(c, "go").Turn
		queued := h.send(c, "then").Turn
		h.Adjust(gateway.Settings{TurnLimit: time.Hour})
		time.Sleep(100 * time.Hour)
		if s := h.view(c).Turn(free).State; s != transcript.TurnRunning {
			t.Fatalf("the turn that began without a limit is %s", s)
		}
		h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: free})
		time.Sleep(time.Hour)
		turn := h.ended(c, queued)
		wantOutcome(t, turn, event.Failed, "turn_limit")
		wantRan(t, turn, time.Hour)
		h.close()
	})
}

// petitioner works for an hour, asks, and works on without end. It can be resumed.
type petitioner struct{}

func (a petitioner) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	if err := out.Text("working"); err != nil {
		return err
	}
	return a.Resume(ctx, in, nil, out)
}

func (petitioner) Resume(ctx context.Context, in agent.Input, state json.RawMessage, out *agent.Emitter) error {
	if state == nil {
		work, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if err := endless(work, in, out); ctx.Err() != nil {
			return err
		}
		if err := out.Emit(nil, json.RawMessage(`"asked"`)); err != nil {
			return err
		}
	}
	if string(state) != `"answered"` {
		if _, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestApproval}); err != nil {
			return err
		}
		if err := out.Emit(nil, json.RawMessage(`"answered"`)); err != nil {
			return err
		}
	}
	return endless(ctx, in, out)
}

// Time that the turn waits for a person doesn't count, and a restart neither adds time nor forgets the waiting.
func TestWaitingForAPersonIsNotRunning(t *testing.T) {
	for _, kills := range []string{"never", "while it waits", "after the answer"} {
		t.Run(kills, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(petitioner{}), limited(3*time.Hour))
				restart := func() {
					j := h.kill()
					h.close()
					h = newTestGateway(t, j, one(petitioner{}), limited(3*time.Hour))
				}
				c := h.create(admin)
				id := h.send(c, "go").Turn
				time.Sleep(5 * time.Hour)
				if kills == "while it waits" {
					restart()
				}
				time.Sleep(5 * time.Hour)
				h.do(c, gateway.Command{Type: gateway.CommandAnswer, Turn: id, Request: "q", Decision: event.Approve})
				time.Sleep(time.Hour)
				if kills == "after the answer" {
					restart()
				}
				time.Sleep(time.Hour)
				turn := h.ended(c, id)
				wantOutcome(t, turn, event.Failed, "turn_limit")
				wantRan(t, turn, 12*time.Hour) // one hour of work, nine of waiting, two of work
				h.close()
			})
		})
	}
}
