package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

func TestATurnFromSendToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if err := out.Reasoning("hm"); err != nil {
				return err
			}
			tool, err := out.Tool("exec", "call1")
			if err != nil {
				return err
			}
			for _, s := range []func() error{
				func() error { return tool.Input(`{"x":1}`) },
				func() error { return tool.Output("out") },
				tool.Done,
				func() error { return out.Text("you said: ") },
				func() error { return out.Text(in.Message.Text) },
			} {
				if err := s(); err != nil {
					return err
				}
			}
			return nil
		})), nil)
		defer h.close()
		c := h.create(alice)
		ack := h.send(c, "hello")
		if ack.State != event.MessageStarted || ack.Seq == 0 {
			t.Errorf("ack %+v", ack)
		}
		wantOutcome(t, h.ended(c, ack.Turn), event.Completed, "")
		tr := h.view(c)
		wantTexts(t, tr, "user: hello", "assistant: you said: hello")
		if m := tr.Messages[0]; m.State != event.MessageStarted || m.StateTurn != ack.Turn {
			t.Errorf("user's message is %s by %s", m.State, m.StateTurn)
		}
		var kinds []string
		for _, p := range tr.Messages[1].Parts {
			kinds = append(kinds, string(p.Kind)+" "+string(p.State)+" "+p.Text(event.Input)+p.Text(event.Output)+p.Text(event.Text))
			if !p.Final {
				t.Errorf("part %s is open", p.ID)
			}
		}
		want := []string{"reasoning  hm", `tool done {"x":1}out`, "text  you said: hello"}
		if !slices.Equal(kinds, want) {
			t.Errorf("parts %q, want %q", kinds, want)
		}
	})
}

func TestHowTurnsFail(t *testing.T) {
	cut := errors.New("boom")
	for name, c := range map[string]struct {
		run  agentFunc
		code string
	}{
		"error":       {func(context.Context, agent.Input, *agent.Emitter) error { return cut }, "agent_error"},
		"shown error": {func(context.Context, agent.Input, *agent.Emitter) error { return &agent.Error{Code: "x", Message: "m"} }, "x"},
		"panic":       {func(context.Context, agent.Input, *agent.Emitter) error { panic("no") }, "agent_error"},
		"silence": {func(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
			<-ctx.Done()
			return ctx.Err()
		}, "silence"},
		"bad operation": {func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			_ = out.Emit([]event.Event{{Type: event.PartAppend, Message: "none", Part: "none", Text: "x"}}, nil)
			<-ctx.Done()
			return ctx.Err()
		}, "invalid_stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(c.run), nil)
				defer h.close()
				conv := h.create(admin)
				wantOutcome(t, h.ended(conv, h.send(conv, "go").Turn), event.Failed, c.code)
			})
		})
	}
}

func TestSilenceStandsStillWhileAToolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			tool, err := out.Tool("sleep", "")
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
				return ctx.Err()
			}
			return tool.Done()
		})), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		time.Sleep(59 * time.Minute)
		if h.view(c).Turn(turn).State != transcript.TurnRunning {
			t.Error("the turn ended while its tool ran")
		}
		time.Sleep(2 * time.Minute)
		wantOutcome(t, h.view(c).Turn(turn), event.Completed, "")
	})
}

func TestStopFencesAndTheNextTurnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began atomic.Int32
		stuck := make(chan struct{})
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			began.Add(1)
			if in.Message.Text != "one" {
				return out.Text("done")
			}
			if err := out.Text("said"); err != nil {
				return err
			}
			<-ctx.Done()
			if err := out.Text(" and more"); !errors.Is(err, agent.ErrTurnOver) {
				t.Errorf("text after the stop: %v", err)
			}
			<-stuck // ignores its context
			return nil
		})), nil)
		defer h.close()
		c := h.create(admin)
		first := h.send(c, "one")
		synctest.Wait()
		second, third := h.send(c, "two"), h.send(c, "three")
		if second.State != event.MessageQueued {
			t.Errorf("second is %s", second.State)
		}
		if ack := h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: second.Turn}); ack.AlreadyEnded {
			t.Error("queued turn had ended")
		}
		synctest.Wait()
		h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: first.Turn})
		wantOutcome(t, h.view(c).Turn(first.Turn), event.Cancelled, "")
		if !h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: first.Turn}).AlreadyEnded {
			t.Error("a second stop is news")
		}
		time.Sleep(9 * time.Second)
		if n := began.Load(); n != 1 {
			t.Errorf("%d turns began before the stopped Run returned", n)
		}
		time.Sleep(2 * time.Second)
		wantOutcome(t, h.view(c).Turn(third.Turn), event.Completed, "")
		wantOutcome(t, h.view(c).Turn(second.Turn), event.Cancelled, "")
		wantTexts(t, h.view(c), "user: one", "assistant: said", "user: two", "user: three", "assistant: done")
		h.refused(c, gateway.Command{Type: gateway.CommandStop, Turn: "nobody"}, gateway.ReasonUnknown)
		close(stuck)
	})
}

func TestRequestsWaitForAPerson(t *testing.T) {
	ask := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		a, err := out.Ask(ctx, event.Request{ID: "r1", Kind: event.RequestApproval, Tool: "rm"})
		if err != nil {
			return err
		}
		return out.Text(string(a.Decision) + " " + a.Text)
	})
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(ask), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		time.Sleep(20 * time.Hour) // far above the limit on silence
		if s := h.view(c).Turn(turn).State; s != transcript.TurnWaiting {
			t.Fatalf("turn is %s", s)
		}
		waiting := func(want ...string) {
			t.Helper()
			s, err := h.Conversation(t.Context(), admin, gateway.ActionRead, c)
			if err != nil || !slices.Equal(s.WaitingTurns, want) {
				t.Errorf("waiting: %v, %v; want %v", s.WaitingTurns, err, want)
			}
		}
		waiting(turn)
		yes := gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: "r1", Decision: event.Approve, Text: "ok"}
		h.refused(c, gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: "r2"}, gateway.ReasonAnswered)
		h.do(c, yes)
		waiting()
		h.ended(c, turn)
		h.refused(c, yes, gateway.ReasonAnswered)
		wantTexts(t, h.view(c), "user: go", "assistant: approve ok")

		turn = h.send(c, "again").Turn
		synctest.Wait()
		waiting(turn)
		time.Sleep(25 * time.Hour)
		wantOutcome(t, h.view(c).Turn(turn), event.Failed, "wait_expired")
		waiting()
	})
}

type steered struct {
	agentFunc
	take func(m agent.Message) error
}

func (s steered) Steer(_ context.Context, _ agent.Input, m agent.Message) error { return s.take(m) }

func TestSendDuringATurnSteersOrQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more := make(chan string, 1)
		h := newTestGateway(t, nil, one(steered{
			func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
				if in.Message.Text == "no" {
					return out.Text("queued after all")
				}
				return out.Text("got " + <-more)
			},
			func(m agent.Message) error {
				if m.Text == "no" {
					return agent.ErrNotSteered
				}
				more <- m.Text
				return nil
			},
		}), nil)
		defer h.close()
		c := h.create(admin)
		turn := h.send(c, "go").Turn
		synctest.Wait()
		no := h.send(c, "no")
		if no.State != event.MessageQueued || no.Turn == turn {
			t.Errorf("unsteered: %+v", no)
		}
		ack := h.send(c, "left")
		if ack.State != event.MessageSteered || ack.Turn != turn {
			t.Errorf("steered: %+v", ack)
		}
		h.ended(c, no.Turn)
		wantTexts(t, h.view(c), "user: go", "user: no", "user: left", "assistant: got left", "assistant: queued after all")
	})
}

func TestAMessageWaitsWhereThatIsAskedForAndCanBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var histories [][]agent.Message
		h := newTestGateway(t, nil, one(steered{
			func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
				histories = append(histories, in.History)
				if in.Message.Text == "go" {
					<-release
				}
				return out.Text("answer to " + in.Message.Text)
			},
			func(agent.Message) error { t.Error("it was steered"); return nil },
		}), nil)
		defer h.close()
		c := h.create(admin)
		h.send(c, "go")
		synctest.Wait()
		queue := func(text string) gateway.Ack {
			return h.do(c, gateway.Command{Type: gateway.CommandSend, Queue: true, Message: &gateway.CommandMessage{Text: text}})
		}
		back, last := queue("never mind"), queue("last")
		if back.State != event.MessageQueued || last.State != event.MessageQueued {
			t.Errorf("%+v, %+v", back, last)
		}
		h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: back.Turn})
		close(release)
		h.ended(c, last.Turn)
		wantTexts(t, h.view(c), "user: go", "user: never mind", "user: last", "assistant: answer to go", "assistant: answer to last")
		for _, m := range histories[len(histories)-1] {
			if m.Text == "never mind" {
				t.Error("the agent gets retracted text as history")
			}
		}
	})
}

func TestManyTextsShareCommitsAndNoneIsLost(t *testing.T) {
	h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for range 20_000 {
			if err := out.Text("0123456789"); err != nil {
				return err
			}
		}
		return nil
	})), nil)
	defer h.close()
	c := h.create(admin)
	h.ended(c, h.send(c, "go").Turn)
	if got, want := h.view(c).Messages[1].Visible(), strings.Repeat("0123456789", 20_000); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}
