package status_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
)

// process is the state of a process that the test changes.
type process struct {
	mu    sync.Mutex
	ready bool
	why   error
}

func (p *process) State() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready, p.why
}

func (p *process) set(ready bool, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.why = ready, why
}

// far is an agent with a health check.
type far struct {
	mu     sync.Mutex
	calls  int
	answer error
}

func (f *far) check(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.answer
}

func (f *far) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *far) answers(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = err
}

// agentIn describes an agent of a snapshot in one line: its state, the seconds since the state changed, and the last error.
func agentIn(t *testing.T, o *status.Overview, name string) string {
	t.Helper()
	for _, h := range o.Snapshot().Agents {
		if h.Name == name {
			return strings.TrimSpace(fmt.Sprintf("%s %d %s", h.State, (time.Now().UnixMilli()-h.Since)/1000, h.Error))
		}
	}
	return "none"
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func turn(o *status.Overview, conversation, id, agent string, end *event.Body) {
	s := &journal.Summary{ID: conversation, Title: "About " + conversation}
	at := time.Now().UnixMilli()
	o.Committed(s, []event.Event{{Type: event.TurnStart, Turn: id, At: at, Body: &event.Body{Agent: agent}}})
	if end != nil {
		o.Committed(s, []event.Event{{Type: event.TurnEnd, Turn: id, At: at, Body: end}})
	}
}

// gauges returns the values of a collector by metric and label.
func gauges(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			out[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return out
}

// An agent's condition depends on its process, on its turns and on health checks.
func TestOverview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := &process{}, &process{ready: true}
		f := &far{}
		o := status.NewOverview()
		o.Agents = func() []status.Member {
			return []status.Member{
				{Name: "plugin", Kind: "plugin", State: p.State},
				{Name: "far", Kind: "http", Default: true, Check: f.check},
				{Name: "quiet", Kind: "exec"},
			}
		}
		o.Channels = func() []status.Member { return []status.Member{{Name: "chat", Kind: "plugin", State: c.State}} }
		o.Channel = func(s *journal.Summary) string { return strings.TrimPrefix(s.Tenant, "t") }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { o.Run(ctx); close(done) }()
		pause := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pause(100 * time.Millisecond)

		want(t, "a process that is starting", agentIn(t, o, "plugin"), "starting 0")
		want(t, "an agent that was never checked", agentIn(t, o, "far"), "unknown 0")
		want(t, "an agent without a health check", agentIn(t, o, "quiet"), "unknown 0")
		want(t, "a channel", string(o.Snapshot().Channels[0].State), "up")
		if n := f.times(); n != 0 {
			t.Errorf("%d checks while no operator was watching, want 0", n)
		}
		p.set(true, nil)
		pause(2 * time.Second)
		want(t, "a process that is ready", agentIn(t, o, "plugin"), "up 1")
		want(t, "an agent that answered", agentIn(t, o, "far"), "up 0")

		// The process goes down while no operator is watching. Since must still be the time it went down.
		p.set(false, errors.New("exit status 1:\n no such file"))
		f.answers(errors.New("connection refused"))
		before := f.times()
		pause(100 * time.Second)
		want(t, "a process that exited", agentIn(t, o, "plugin"), "down 99 exit status 1: no such file")
		want(t, "an agent that failed while no operator was watching", agentIn(t, o, "far"), "up 100")
		if n := f.times() - before; n != 0 {
			t.Errorf("%d checks while no operator was watching, want 0", n)
		}
		pause(2 * time.Second)
		want(t, "after a health check failed", agentIn(t, o, "far"), "down 0 connection refused")
		if g := gauges(t, o); g["leat_agent_up far"] != 0 || g["leat_agent_up quiet"] != 1 || g["leat_channel_up chat"] != 1 || len(g) != 4 {
			t.Errorf("metrics %v", g)
		}
		f.answers(nil)
		pause(6 * time.Second)
		want(t, "after a health check succeeded", agentIn(t, o, "far"), "up 1 connection refused") // the last error stays

		// A turn that doesn't reach its agent marks the agent as down.
		turn(o, "c1", "t1", "far", &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "agent_unreachable", Message: "no route"}})
		want(t, "after a turn did not reach the agent", agentIn(t, o, "far"), "down 0 no route")
		if h := o.Snapshot().Agents[0]; h.Turn != "t1" || h.ErrorIn != "c1" || h.Conversation != "c1" || h.LastEvent == 0 || !h.Default {
			t.Errorf("%+v", h)
		}
		turn(o, "c1", "t2", "far", &event.Body{Outcome: event.Completed})
		want(t, "after a turn reached the agent", agentIn(t, o, "far"), "up 0 no route")
		for i := range 3 {
			turn(o, "c2", fmt.Sprint("f", i), "far", &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "x", Message: "quotes c2"}})
		}
		want(t, "after three failed turns", agentIn(t, o, "far"), "failing 0 quotes c2")
		turn(o, "c2", "open", "quiet", nil)
		turn(o, "c3", "queued", "quiet", nil)
		l := o.Snapshot()
		if len(l.Turns) != 2 || l.Turns[0].Turn != "open" || l.Turns[0].Title != "About c2" || l.Turns[0].State != "running" || l.Turns[0].Agent != "quiet" {
			t.Errorf("%+v", l.Turns)
		}
		// Deleting a conversation removes the errors that quote it.
		o.Committed(&journal.Summary{ID: "c2"}, []event.Event{{Type: event.ConversationDelete}})
		if l = o.Snapshot(); agentIn(t, o, "far") != "failing 0" || len(l.Turns) != 1 {
			t.Errorf("%+v", l)
		}
		o.Committed(&journal.Summary{ID: "c9", Tenant: "tchat"}, nil)
		if h := o.Snapshot().Channels[0]; h.LastEvent == 0 || h.Conversation != "c9" {
			t.Errorf("%+v", h)
		}
		cancel()
		<-done
	})
}

// Recall restores the last activity and the last error of agents from the stored signals.
func TestOverviewRecalls(t *testing.T) {
	o := status.NewOverview()
	o.Agents = func() []status.Member { return []status.Member{{Name: "a"}} }
	o.Recall([]signals.Entry{
		{Type: signals.AgentEvent, RunID: "t1", Conversation: "c1", JSON: []byte(`{"ts":5,"stream":"lifecycle","agentId":"a","payload":{"phase":"error","code":"silence"}}`)},
		{Type: signals.AgentEvent, RunID: "t2", Conversation: "c2", JSON: []byte(`{"ts":7,"stream":"assistant","agentId":"a","payload":{"text":"x"}}`)},
		{Type: signals.TrainingEvent, JSON: []byte(`{}`)},
	})
	find := func() (status.Open, bool, error) {
		return status.Open{Turn: "t3", Conversation: "c3", Agent: "a", State: "waiting"}, true, nil
	}
	if err := o.Resume(find); err != nil {
		t.Fatal(err)
	}
	l := o.Snapshot()
	if h := l.Agents[0]; h.Error != "silence" || h.ErrorAt != 5 || h.Turn != "t1" || h.ErrorIn != "c1" || h.LastEvent != 7 || h.Conversation != "c2" || len(l.Turns) != 1 {
		t.Errorf("%+v", l)
	}
}

// A turn that ends while Resume adds it does not stay open.
func TestOverviewResumesTurnThatEnds(t *testing.T) {
	o := status.NewOverview()
	calls := 0
	err := o.Resume(func() (status.Open, bool, error) {
		if calls++; calls == 1 { // the turn ends between the two calls
			defer o.Committed(&journal.Summary{ID: "c"}, []event.Event{{Type: event.TurnEnd, Turn: "t", Body: &event.Body{Outcome: event.Completed}}})
		}
		return status.Open{Turn: "t", Conversation: "c", State: "running"}, calls == 1, nil
	})
	if l := o.Snapshot(); err != nil || len(l.Turns) != 0 {
		t.Errorf("%+v, %v", l.Turns, err)
	}
}

// A turn that failed because its process was not running doesn't keep the agent down once the process is ready.
func TestOverviewProcessIsBack(t *testing.T) {
	p := &process{why: errors.New("exit status 1")}
	o := status.NewOverview()
	o.Agents = func() []status.Member { return []status.Member{{Name: "a", State: p.State}} }
	turn(o, "c", "t", "a", &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "agent_not_started", Message: "it does not run"}})
	want(t, "a process that exited", string(o.Snapshot().Agents[0].State), "down")
	p.set(true, nil)
	want(t, "after the process is ready", string(o.Snapshot().Agents[0].State), "up")
}
