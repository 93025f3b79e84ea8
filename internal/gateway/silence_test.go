package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// A new state without operations doesn't count as progress, because comments in a stream change the state too.
func TestAStateAloneIsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			for range 100 {
				if err := out.Decode(func() ([]event.Event, json.RawMessage, error) { return nil, json.RawMessage(`1`), nil }); err != nil {
					return err
				}
				if err := out.Decode(func() ([]event.Event, json.RawMessage, error) { return nil, nil, nil }); err != nil {
					return err
				}
				time.Sleep(10 * time.Second)
			}
			return nil
		})), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.ended(c, h.send(c, "go").Turn)
		wantOutcome(t, turn, event.Failed, "silence")
		wantRan(t, turn, 2*time.Minute)
	})
}

// If an agent is silent because it retries, the turn fails with the error of its last attempt.
func TestSilenceTellsWhatTheLastAttemptFailedOf(t *testing.T) {
	refused := &agent.Error{Code: "agent_unreachable", Message: "connection refused", Retryable: true}
	for code, after := range map[string]func(*agent.Emitter){
		"agent_unreachable": func(*agent.Emitter) {},
		"silence":           func(out *agent.Emitter) { out.Trouble(nil) },
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
					out.Trouble(refused)
					after(out)
					<-ctx.Done()
					return ctx.Err()
				})), nil)
				defer h.close()
				c := h.create(admin)
				wantOutcome(t, h.ended(c, h.send(c, "go").Turn), event.Failed, code)
			})
		})
	}
}

// probed is a silent agent that implements Probe.
type probed struct {
	asked  atomic.Int32
	answer func(n int32) error
}

func (*probed) Run(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
	<-ctx.Done()
	return ctx.Err()
}

func (p *probed) Probe(context.Context, agent.Input) error { return p.answer(p.asked.Add(1)) }

var _ agent.Prober = (*probed)(nil)

func TestTheUpstreamIsAskedBeforeASilentTurnFails(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(n int32) error
		code   string
		ran    time.Duration
	}{
		"it works for a while": {func(n int32) error {
			if n < 4 {
				return nil
			}
			return errors.New("no route")
		}, "silence", 8 * time.Minute},
		"it can't be reached": {func(int32) error { return errors.New("no route") }, "silence", 2 * time.Minute},
		"its run has failed":  {func(int32) error { return &agent.Error{Code: "run_error", Message: "m"} }, "run_error", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(&probed{answer: tt.answer}), nil)
				defer h.close()
				c := h.create(admin)
				turn := h.ended(c, h.send(c, "go").Turn)
				wantOutcome(t, turn, event.Failed, tt.code)
				wantRan(t, turn, tt.ran)
			})
		})
	}
}
