package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// own is a directory with an agent named "mine" for each subject. The agent answers with the subject's name.
type own struct{ may chan struct{} }

func (o own) Agent(name string, p agent.Principal) (gateway.Agent, bool) {
	if name != "mine" || p.Subject == "" {
		return gateway.Agent{}, false
	}
	return gateway.Agent{Kind: "own", Agent: agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		<-o.may
		return out.Text(p.Subject + "'s, asked by " + in.Principal.Subject)
	})}, true
}

func (own) Names(p agent.Principal) []string {
	if p.Subject == "" {
		return nil
	}
	return []string{"mine"}
}

// Agents are looked up by name and principal, when a turn is requested and again when it leaves the queue.
func TestAgentOfEachPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := make(chan struct{})
		h := newTestGateway(t, nil, nil, func(c *gateway.Config) { c.Agents = own{may} })
		defer h.close()
		for _, p := range []gateway.Principal{alice, bob} {
			if got := h.Catalog().Agents(p); len(got) != 1 || !reflect.DeepEqual(got[0], gateway.AgentInfo{Name: "mine", Kind: "own"}) {
				t.Errorf("%s may name %+v", p.Subject, got)
			}
			s, _, err := h.Create(t.Context(), p, gateway.CreateOptions{Agent: "mine"})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"at once", "from the queue"} {
				if _, err := h.Do(t.Context(), p, s.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}}); err != nil {
					t.Fatal(err)
				}
			}
			may <- struct{}{}
			may <- struct{}{}
			h.until(s.ID, func(tr *transcript.Transcript) bool { return len(tr.Turns) == 2 && !tr.Turns[1].Unfinished() })
			said := p.Subject + "'s, asked by " + p.Subject
			wantTexts(t, h.view(s.ID), "user: at once", "user: from the queue", "assistant: "+said, "assistant: "+said)
		}
		if got := h.Catalog().Agents(admin); len(got) != 0 {
			t.Errorf("the admin, who is no subject, may name %+v", got)
		}
		var r *gateway.Rejection
		if _, _, err := h.Create(t.Context(), admin, gateway.CreateOptions{Agent: "mine"}); !errors.As(err, &r) || r.Reason != gateway.ReasonUnknownAgent {
			t.Error(err)
		}
	})
}

// keeping runs turns until it is closed.
type keeping struct {
	mu             sync.Mutex
	starts, closes int
	closed         chan struct{}
}

func newKeeping() *keeping { return &keeping{closed: make(chan struct{})} }

func (k *keeping) Start(*slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.starts++
}

func (k *keeping) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closes++; k.closes == 1 {
		close(k.closed)
	}
}

func (k *keeping) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("begun"); err != nil {
		return err
	}
	select {
	case <-k.closed:
		return &agent.Error{Code: "closed", Message: "closed"}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *keeping) want(t *testing.T, starts, closes int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.starts != starts || k.closes != closes {
		t.Errorf("started %d times, closed %d times; want %d, %d", k.starts, k.closes, starts, closes)
	}
}

// An agent is removed while it answers. The turn that needs its process fails, and so does the queued one. A turn that doesn't need it
// continues.
func TestAgentsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := gateway.NewRoster(slog.New(slog.DiscardHandler))
		k, release := newKeeping(), make(chan struct{})
		free := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			<-release
			return out.Text("whole")
		})
		for name, a := range map[string]agent.Agent{"k": k, "free": free} {
			if err := r.Add(name, gateway.Agent{Agent: a}); err != nil {
				t.Fatal(err)
			}
		}
		h := newTestGateway(t, nil, nil, func(c *gateway.Config) { c.Agents = r })
		defer h.close()
		k.want(t, 0, 0)
		r.Start()
		k.want(t, 1, 0)

		ask := func(conv, name string) gateway.Ack {
			return h.do(conv, gateway.Command{Type: gateway.CommandSend, Agent: name, Message: &gateway.CommandMessage{Text: "?"}})
		}
		one, two := h.create(admin), h.create(admin)
		runs, waits, freely := ask(one, "k"), ask(one, "k"), ask(two, "free")
		h.until(one, func(tr *transcript.Transcript) bool { return len(tr.Messages) == 3 })
		if !r.Remove("k") || !r.Remove("free") || r.Remove("k") {
			t.Error("both were there, once")
		}
		k.want(t, 1, 1)
		wantOutcome(t, h.ended(one, runs.Turn), event.Failed, "closed")
		wantOutcome(t, h.ended(one, waits.Turn), event.Failed, "not_started")
		h.refused(one, gateway.Command{Type: gateway.CommandSend, Agent: "k", Message: &gateway.CommandMessage{Text: "?"}}, gateway.ReasonUnknownAgent)
		close(release)
		wantOutcome(t, h.ended(two, freely.Turn), event.Completed, "")

		// A new agent with the name is used at once, and can be replaced.
		before, after, late := newKeeping(), newKeeping(), newKeeping()
		if err := r.Add("k", gateway.Agent{Agent: before}); err != nil {
			t.Fatal(err)
		}
		if err := r.Add("k", gateway.Agent{Agent: late}); err == nil {
			t.Error("two agents of one name")
		}
		late.want(t, 0, 1)
		again := ask(one, "k")
		if err := r.Replace("k", gateway.Agent{Agent: after}); err != nil {
			t.Fatal(err)
		}
		wantOutcome(t, h.ended(one, again.Turn), event.Failed, "closed")
		before.want(t, 1, 1)
		after.want(t, 1, 0)
		if err := r.Replace(gateway.PushAgent, gateway.Agent{Agent: newKeeping()}); err == nil {
			t.Error("the gateway's own agent was replaced")
		}
		r.Close()
		after.want(t, 1, 1)
		if err := r.Add("x", gateway.Agent{Agent: newKeeping()}); err == nil || len(r.Names(agent.Principal{})) != 0 {
			t.Error("an agent came after the end")
		}
	})
}

// introduced is an agent that introduces itself.
type introduced struct{ agentFunc }

func (introduced) Describe() (string, []string) { return "Own words.", []string{"Hello"} }

// The configuration overrides an agent's own introduction, and only admins read why an agent is down.
func TestIntroductions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		echoes := introduced{agentFunc(echo)}
		h := newTestGateway(t, nil, nil, func(c *gateway.Config) {
			c.Agents = gateway.Agents{"a": {Agent: echoes}, "b": {Agent: echoes, Description: "Configured.", Suggestions: []string{"Hi", "Ho"}}}
			c.Condition = func(name string) (state, reason string) {
				if name == "b" {
					return "down", "connection to 10.0.0.1 refused"
				}
				return "", ""
			}
		})
		defer h.close()
		want := []gateway.AgentInfo{
			{Name: "a", Description: "Own words.", Suggestions: []string{"Hello"}},
			{Name: "b", Description: "Configured.", Suggestions: []string{"Hi", "Ho"}, State: "down", Reason: "connection to 10.0.0.1 refused"},
		}
		if got := h.Catalog().Agents(admin); !reflect.DeepEqual(got, want) {
			t.Errorf("admin: %+v", got)
		}
		want[1].Reason = ""
		if got := h.Catalog().Agents(alice); !reflect.DeepEqual(got, want) {
			t.Errorf("alice: %+v", got)
		}
	})
}
