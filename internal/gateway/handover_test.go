package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/transcript"
)

// handing is an agent that leaves its turns to a producer after a while.
type handing struct {
	after time.Duration
	to    string // dialect

	mu      sync.Mutex
	inputs  []agent.Input
	stopped []string // turns
}

func (*handing) MayPush() {}

func (a *handing) Run(ctx context.Context, in agent.Input, _ *agent.Emitter) error {
	a.mu.Lock()
	a.inputs = append(a.inputs, in)
	a.mu.Unlock()
	select {
	case <-time.After(a.after):
		return &agent.PushPending{Dialect: a.to}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *handing) Stop(ctx context.Context, in agent.Input) error {
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("the context has no end")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = append(a.stopped, in.Turn)
	return nil
}

func (a *handing) input() agent.Input {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inputs[len(a.inputs)-1]
}

// wantStopped checks for which turns the agent's Stop was called.
func (a *handing) wantStopped(t *testing.T, turns ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Join(a.stopped, " ") != strings.Join(turns, " ") {
		t.Errorf("Stop was called for %q, want %q", a.stopped, turns)
	}
}

func newHanding() *handing { return &handing{after: time.Second, to: "eliza-actions"} }

// attach continues the stream of a turn as the holder of its token.
func (h *testGateway) attach(in agent.Input) *push.Producer {
	h.t.Helper()
	turn, err := h.TurnOf(h.t.Context(), in.Ingest.Token)
	if err != nil || turn != in.Turn {
		h.t.Fatalf("the token is that of turn %q, %v, want %q", turn, err, in.Turn)
	}
	pr, err := h.Attach(h.t.Context(), gateway.Principal{Turn: turn}, turn)
	if err != nil {
		h.t.Fatal(err)
	}
	return pr
}

func (h *testGateway) write(pr *push.Producer, lines ...string) {
	h.t.Helper()
	for _, l := range lines {
		if err := pr.Write(h.t.Context(), []byte(l+"\n")); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestATurnIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHanding()
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "go").Turn
		synctest.Wait()
		in := a.input()
		if in.Ingest == nil || in.Ingest.URL != "http://gateway/api/turns/"+turn+"/ingest" {
			t.Fatalf("the agent was told %+v", in.Ingest)
		}
		p := gateway.Principal{Turn: turn}
		if progress, err := h.Progress(t.Context(), p, turn); progress.Offset != 0 || progress.IsEnded || err != nil {
			t.Errorf("before it is handed on: %d, %v, %v", progress.Offset, progress.IsEnded, err)
		}
		time.Sleep(2 * time.Second)
		pr := h.attach(in)
		h.write(pr, `{"type":"callback","text":"Looking"}`, `{"type":"chunk","text":"Found it."}`)
		if progress, err := h.Progress(t.Context(), p, turn); progress.Offset != pr.Offset() || progress.Offset == 0 || progress.IsEnded || err != nil {
			t.Errorf("half-way: %d, %v, %v", progress.Offset, progress.IsEnded, err)
		}
		h.write(pr, `{"type":"done"}`)
		wantOutcome(t, h.ended(c, turn), event.Completed, "")
		wantTexts(t, h.view(c), "user: go", "assistant: Looking\n\nFound it.")
		if err := pr.Close(true); err != nil {
			t.Error(err)
		}
		if got := h.view(c).Turn(turn).Agent; got != "a" {
			t.Errorf("the turn's agent is %s", got)
		}
		synctest.Wait()
		a.wantStopped(t)
		// The producer must still learn that the turn has ended.
		if progress, err := h.Progress(t.Context(), p, turn); !progress.IsEnded || err != nil {
			t.Errorf("at its end: %v, %v", progress.IsEnded, err)
		}
		if _, err := h.Attach(t.Context(), p, turn); !errors.Is(err, gateway.ErrTurnOver) {
			t.Errorf("after its end: %v", err)
		}
	})
}

// A producer may connect before the turn is left to it; then it waits.
func TestTheProducerComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHanding()
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "go").Turn
		synctest.Wait()
		pr := h.attach(a.input())
		wrote := make(chan error, 1)
		go func() {
			wrote <- pr.Write(t.Context(), []byte(`{"type":"chunk","text":"early"}`+"\n"+`{"type":"done"}`+"\n"))
		}()
		synctest.Wait()
		select {
		case err := <-wrote:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		wantOutcome(t, h.ended(c, turn), event.Completed, "")
		wantTexts(t, h.view(c), "user: go", "assistant: early")
		if err := pr.Close(true); err != nil {
			t.Error(err)
		}
	})
}

// A turn that was left to a producer survives a stop and a kill of the gateway, and the removal of its agent from the configuration.
func TestATurnThatIsHandedOnOutlivesTheProcess(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "agent gone"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newHanding()
				h := newTestGateway(t, nil, one(a), nil)
				c := h.create(alice)
				turn := h.send(c, "go").Turn
				time.Sleep(2 * time.Second)
				in := a.input()
				pr := h.attach(in)
				h.write(pr, `{"type":"chunk","text":"before "}`)
				<-pr.Acks()
				disk := h.journal.Journal
				if how == "stopped" {
					h.close()
				} else {
					disk = h.kill()
				}
				_ = pr.Close(false)

				agents := one(a)
				if how == "agent gone" {
					agents = nil
				}
				h2 := newTestGateway(t, disk, agents, nil)
				defer h2.close()
				if s := h2.view(c).Turn(turn).State; s != transcript.TurnRunning {
					t.Fatalf("the turn is %s", s)
				}
				pr = h2.attach(in)
				if pr.Offset() == 0 {
					t.Error("it starts from the beginning")
				}
				h2.write(pr, `{"type":"chunk","text":"and after"}`, `{"type":"done"}`)
				wantOutcome(t, h2.ended(c, turn), event.Completed, "")
				wantTexts(t, h2.view(c), "user: go", "assistant: before and after")
				if err := pr.Close(true); err != nil {
					t.Error(err)
				}
				if how != "stopped" {
					h.close()
				}
				if len(a.inputs) != 1 {
					t.Errorf("the agent was asked %d times", len(a.inputs))
				}
				a.wantStopped(t)
			})
		})
	}
}

// An agent in another process is notified when its turn is ended.
func TestTheAgentIsToldOfAStop(t *testing.T) {
	stop := func(h *testGateway, c, turn string) { h.do(c, gateway.Command{Type: gateway.CommandStop, Turn: turn}) }
	for _, tt := range []struct {
		name    string
		end     func(h *testGateway, c, turn string)
		outcome event.Outcome
		code    string
	}{
		{"before it is handed on", stop, event.Cancelled, ""},
		{"a person", func(h *testGateway, c, turn string) { time.Sleep(2 * time.Second); stop(h, c, turn) }, event.Cancelled, ""},
		{"the lease", func(*testGateway, string, string) { time.Sleep(gateway.DefaultLease + 2*time.Second) }, event.Failed, "lease_expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newHanding()
				h := newTestGateway(t, nil, one(a), nil)
				defer h.close()
				c := h.create(alice)
				turn := h.send(c, "go").Turn
				synctest.Wait()
				tt.end(h, c, turn)
				wantOutcome(t, h.ended(c, turn), tt.outcome, tt.code)
				synctest.Wait()
				a.wantStopped(t, turn)
			})
		})
	}
}

func TestHandedOnToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(&handing{to: "klingon"}), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.ended(c, h.send(c, "go").Turn)
		wantOutcome(t, turn, event.Failed, "agent_error")
		if strings.Contains(turn.Error.Message, "klingon") { // details are for operators only
			t.Errorf("the error: %v", turn.Error)
		}
	})
}

// An agent that isn't a Pusher gets no address to push to, and no producer may push its turns.
func TestOthersMayNotPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan agent.Input, 1)
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			got <- in
			<-ctx.Done()
			return &agent.PushPending{Dialect: "eliza-actions"}
		})), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "go").Turn
		if in := <-got; in.Ingest != nil {
			t.Errorf("it was told %+v", in.Ingest)
		}
		if _, err := h.Attach(t.Context(), admin, turn); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("attach: %v", err)
		}
		if _, err := h.Progress(t.Context(), admin, turn); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("status: %v", err)
		}
	})
}

// The token of a turn is valid for that turn only.
func TestTheTokenOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHanding()
		h := newTestGateway(t, nil, one(a), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "go").Turn
		synctest.Wait()
		in := a.input()
		other := h.create(alice)
		foreign := h.send(other, "go").Turn
		synctest.Wait()

		token := in.Ingest.Token
		for _, bad := range []string{"", "x", token[:len(token)-1], token + "x", strings.Replace(token, turn, foreign, 1), "leat-turn." + turn, "leat-turn." + turn + ".", strings.ToUpper(token), strings.Repeat(token, 9)} {
			if got, err := h.TurnOf(t.Context(), bad); got != "" || err != nil {
				t.Errorf("%.80q is the token of %q, %v", bad, got, err)
			}
		}
		p := gateway.Principal{Turn: turn, Subject: "alice", Tenant: "t1", Admin: true} // the other fields must have no effect
		s, err := h.Conversation(t.Context(), alice, gateway.ActionRead, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range []gateway.Action{
			gateway.ActionList, gateway.ActionCreate, gateway.ActionRead, gateway.ActionWrite, gateway.ActionDelete, gateway.ActionAgent, gateway.ActionAdmin,
		} {
			if err := gateway.Decide(p, action, &s); !errors.Is(err, gateway.ErrNotFound) {
				t.Errorf("%s of its conversation: %v", action, err)
			}
			if err := gateway.Decide(p, action, nil); !errors.Is(err, gateway.ErrForbidden) {
				t.Errorf("%s: %v", action, err)
			}
			want := error(nil)
			if action != gateway.ActionAgent {
				want = gateway.ErrNotFound
			}
			if err := gateway.DecideTurn(p, action, turn, &s); !errors.Is(err, want) {
				t.Errorf("%s of its turn: %v, want %v", action, err, want)
			}
			if err := gateway.DecideTurn(p, action, foreign, &s); !errors.Is(err, gateway.ErrNotFound) {
				t.Errorf("%s of another turn: %v", action, err)
			}
		}
		if _, err := h.Attach(t.Context(), p, foreign); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("another turn: %v", err)
		}
		if _, _, err := h.Push(t.Context(), p, c, push.Options{Dialect: "eliza-actions"}); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("a turn of its own: %v", err)
		}
	})
}
