package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// asker asks with an event and gets the answer from a call, like an agent whose upstream continues without a connection.
type asker struct {
	take func(event.Answer) error

	mu   sync.Mutex
	told []string
	came chan event.Answer
}

func newAsker(take func(event.Answer) error) *asker {
	return &asker{take: take, came: make(chan event.Answer, 10)}
}

func (a *asker) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	wait := event.Event{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "q", Kind: event.RequestApproval, Options: []string{"later"}}}}
	if err := out.Emit([]event.Event{wait}, json.RawMessage("1")); err != nil {
		return err
	}
	return a.Resume(ctx, in, nil, out)
}

func (a *asker) Resume(ctx context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
	select {
	case got := <-a.came:
		return out.Text("told " + string(got.Decision))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *asker) Answer(_ context.Context, _ agent.Input, got event.Answer) error {
	a.mu.Lock()
	a.told = append(a.told, string(got.Decision))
	a.mu.Unlock()
	if err := a.take(got); err != nil {
		return err
	}
	a.came <- got
	return nil
}

func (a *asker) heard() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

var yes = gateway.Command{Type: gateway.CommandAnswer, Request: "q", Decision: event.Approve}

// asked starts a turn and returns at its request.
func (h *testGateway) asked(conv string) gateway.Command {
	h.t.Helper()
	c := yes
	c.Turn = h.send(conv, "go").Turn
	h.until(conv, func(t *transcript.Transcript) bool {
		turn := t.Turn(c.Turn)
		return turn != nil && turn.State == transcript.TurnWaiting
	})
	return c
}

func TestAnAnswerIsToldUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 5
		a := newAsker(func(event.Answer) error {
			if fails--; fails >= 0 {
				return errors.New("not connected")
			}
			return nil
		})
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		conv := h.create(alice)
		answer := h.asked(conv)
		for _, bad := range []event.Decision{"", "perhaps"} {
			wrong := answer
			wrong.Decision = bad
			h.refused(conv, wrong, gateway.ReasonInvalid)
		}
		h.do(conv, answer)
		h.refused(conv, answer, gateway.ReasonAnswered)
		h.ended(conv, answer.Turn)
		wantTexts(t, h.view(conv), "user: go", "assistant: told approve")
		if n := len(a.heard()); n != 6 {
			t.Errorf("told %d times", n)
		}
	})
}

func TestAnAnswerThatIsNotTakenEndsTheTurn(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code string
	}{
		"refused":  {&agent.Error{Code: "mine", Message: "no such request"}, "mine"},
		"for ever": {errors.New("not connected"), "not_answered"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(newAsker(func(event.Answer) error { return tt.err })), nil)
				defer h.close()
				conv := h.create(alice)
				answer := h.asked(conv)
				h.do(conv, answer)
				wantOutcome(t, h.ended(conv, answer.Turn), event.Failed, tt.code)
			})
		})
	}
}

// The gateway is restarted while a request is open, between the answer and its delivery, and after the delivery.
func TestAnAnswerOutlivesTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		down := newAsker(func(event.Answer) error { return errors.New("not connected") })
		h := newTestGateway(t, j, one(down), func(c *gateway.Config) { c.Drain = time.Second })
		conv := h.create(alice)
		answer := h.asked(conv)
		h.close()

		h = newTestGateway(t, j, one(down), func(c *gateway.Config) { c.Drain = time.Second })
		later := answer
		later.Decision = "later"
		h.do(conv, later)
		h.refused(conv, answer, gateway.ReasonAnswered)
		synctest.Wait()
		h.close()
		if got := down.heard(); len(got) == 0 || got[0] != "later" {
			t.Errorf("told %q", got)
		}

		up := newAsker(func(event.Answer) error { return nil })
		h = newTestGateway(t, j, one(up), nil)
		defer h.close()
		wantOutcome(t, h.ended(conv, answer.Turn), event.Completed, "")
		wantTexts(t, h.view(conv), "user: go", "assistant: told later")
		if got := up.heard(); !slices.Equal(got, []string{"later"}) {
			t.Errorf("told %q", got)
		}
	})
}

// An answer that the agent has accepted is not delivered again after a restart.
func TestATakenAnswerIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		taken := make(chan struct{})
		first := newAsker(func(event.Answer) error { close(taken); return nil }) // and never continues
		h := newTestGateway(t, j, one(stuck{first}), func(c *gateway.Config) { c.Drain = time.Second })
		conv := h.create(alice)
		answer := h.asked(conv)
		h.do(conv, answer)
		<-taken
		synctest.Wait()
		h.close()
		second := newAsker(func(event.Answer) error { return nil })
		h = newTestGateway(t, j, one(second), nil)
		defer h.close()
		synctest.Wait()
		if got := second.heard(); len(got) > 0 {
			t.Errorf("told again: %q", got)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: answer.Turn})
	})
}

// stuck is an agent that never continues.
type stuck struct{ *asker }

func (s stuck) Resume(ctx context.Context, _ agent.Input, _ json.RawMessage, _ *agent.Emitter) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s stuck) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	wait := event.Event{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "q", Kind: event.RequestApproval}}}
	if err := out.Emit([]event.Event{wait}, json.RawMessage("1")); err != nil {
		return err
	}
	return s.Resume(ctx, in, nil, out)
}

// chooser accepts messages into some turns only.
type chooser struct {
	steered
	may bool
}

func (c chooser) Steers(string) bool { return c.may }

// If an agent reports that it can't be steered now, no message is offered to it, and none is shown as steered.
func TestAChooserIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go1 := make(chan struct{})
		h := newTestGateway(t, nil, one(chooser{steered{func(context.Context, agent.Input, *agent.Emitter) error { <-go1; return nil }, func(agent.Message) error {
			t.Error("it was asked")
			return nil
		}}, false}), nil)
		defer h.close()
		conv := h.create(alice)
		h.send(conv, "one")
		synctest.Wait()
		ack := h.send(conv, "two")
		if ack.State != event.MessageQueued {
			t.Errorf("%+v", ack)
		}
		close(go1)
		h.ended(conv, ack.Turn)
		r, err := h.journal.Read(t.Context(), conv, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Events {
			if e.Type == event.MessageUpdate && e.Get().MessageState == event.MessageSteered {
				t.Error("it was shown as steered")
			}
		}
	})
}

// The producer of a pushed turn gets the answer to its request, again with each connection.
func TestAProducerIsToldAnswers(t *testing.T) {
	j := memory.New()
	h := newTestGateway(t, j, nil, func(c *gateway.Config) { c.Drain, c.Lease = time.Millisecond, time.Hour })
	conv := h.create(alice)
	pr, ack, err := h.Push(t.Context(), alice, conv, push.Options{Dialect: "leat"})
	if err != nil {
		t.Fatal(err)
	}
	if err := pr.Write(t.Context(), []byte(`{"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval"}}`+"\n")); err != nil {
		t.Fatal(err)
	}
	answer := yes
	answer.Turn = ack.Turn
	h.until(conv, func(t *transcript.Transcript) bool {
		turn := t.Turn(ack.Turn)
		return turn != nil && len(turn.Requests) > 0
	})
	all, more := pr.Answers()
	if len(all) > 0 {
		t.Errorf("told %v", all)
	}
	h.do(conv, answer)
	<-more
	told := func(pr *push.Producer) {
		t.Helper()
		if all, _ := pr.Answers(); len(all) != 1 || all[0].ID != "q" || all[0].Decision != event.Approve {
			t.Errorf("told %v", all)
		}
		if all, _ := pr.Answers(); len(all) > 0 {
			t.Errorf("told again %v", all)
		}
	}
	told(pr)
	_ = pr.Close(false)
	if pr, err = h.Attach(t.Context(), alice, ack.Turn); err != nil {
		t.Fatal(err)
	}
	told(pr)
	_ = pr.Close(false)
	h.close()
	h = newTestGateway(t, j, nil, func(c *gateway.Config) { c.Drain = time.Millisecond })
	defer h.close()
	if pr, err = h.Attach(t.Context(), alice, ack.Turn); err != nil {
		t.Fatal(err)
	}
	told(pr)
	_ = pr.Close(false)
}
