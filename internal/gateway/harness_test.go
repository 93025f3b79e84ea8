package gateway_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	leatdialect "github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// agentFunc is an agent that consists of its Run.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

var (
	admin = gateway.Principal{Admin: true}
	alice = gateway.Principal{Tenant: "t1", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}
	bob   = gateway.Principal{Tenant: "t1", Subject: "bob"}
)

// faulty is a journal whose commits fail when a test wants it.
type faulty struct {
	journal.Journal
	err atomic.Pointer[error]
}

func (f *faulty) fail(err error) {
	if err == nil {
		f.err.Store(nil)
		return
	}
	f.err.Store(&err)
}

func (f *faulty) Append(ctx context.Context, b journal.Batch) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Journal.Append(ctx, b)
}

// AppendAsync implements [journal.AsyncAppender] for every journal, also for those of tests that block.
func (f *faulty) AppendAsync(b journal.Batch, report func(error)) error {
	go func() { report(f.Append(context.Background(), b)) }()
	return nil
}

func (f *faulty) Healthy() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Journal.Healthy()
}

type testGateway struct {
	t *testing.T
	*gateway.Gateway
	*inspection.Inspector
	*push.Service
	journal *faulty
}

func newTestGateway(t *testing.T, j journal.Journal, agents gateway.Agents, change func(*gateway.Config)) *testGateway {
	t.Helper()
	if j == nil {
		j = memory.New()
	}
	f, ok := j.(*faulty)
	if !ok {
		f = &faulty{Journal: j}
	}
	c := gateway.Config{Journal: f, Agents: agents, Dialects: dialect.NewRegistry(elizaactions.Dialect(), leatdialect.Dialect()), DefaultAgent: "a"}
	if _, ok := agents["a"]; !ok {
		c.DefaultAgent = ""
	}
	if change != nil {
		change(&c)
	}
	turns := push.NewTurns(push.Config{Journal: f, Dialects: c.Dialects, Log: c.Log, Metrics: c.Metrics, URL: "http://gateway"})
	c.Pusher = turns
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	inspector := inspection.New(g, inspection.Config{Journal: f, Captures: c.Raw, Dialects: c.Dialects, Agents: c.Agents})
	return &testGateway{t, g, inspector, push.NewService(turns, g), f}
}

func one(a agent.Agent) gateway.Agents { return gateway.Agents{"a": {Agent: a}} }

func (h *testGateway) close() {
	h.t.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		h.t.Error("shutdown:", err)
	}
}

func (h *testGateway) create(p gateway.Principal) string {
	h.t.Helper()
	s, _, err := h.Create(h.t.Context(), p, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func (h *testGateway) do(conv string, c gateway.Command) gateway.Ack {
	h.t.Helper()
	ack, err := h.Do(h.t.Context(), admin, conv, c)
	if err != nil {
		h.t.Fatalf("%s: %v", c.Type, err)
	}
	return ack
}

func (h *testGateway) send(conv, text string) gateway.Ack {
	h.t.Helper()
	return h.do(conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
}

func (h *testGateway) refused(conv string, c gateway.Command, reason string) {
	h.t.Helper()
	_, err := h.Do(h.t.Context(), admin, conv, c)
	var r *gateway.Rejection
	if !errors.As(err, &r) || r.Reason != reason {
		h.t.Errorf("%s: got %v, want a rejection for %s", c.Type, err, reason)
	}
}

// view returns the transcript that a reader gets.
func (h *testGateway) view(conv string) *transcript.Transcript {
	h.t.Helper()
	r, err := h.journal.Read(context.Background(), conv, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	t := &transcript.Transcript{}
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			h.t.Fatal(err)
		}
	}
	return t
}

// until waits until the transcript that a reader gets satisfies ok.
func (h *testGateway) until(conv string, ok func(*transcript.Transcript) bool) {
	h.t.Helper()
	f, err := h.Feed(context.Background(), admin, conv)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	limit := time.After(time.Hour)
	for {
		changed := f.Notify()
		done := false
		f.View(func(t *transcript.Transcript) { done = ok(t) })
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			h.t.Fatalf("never came to be")
		}
	}
}

func (h *testGateway) ended(conv, turn string) *transcript.Turn {
	h.t.Helper()
	h.until(conv, func(t *transcript.Transcript) bool {
		tr := t.Turn(turn)
		return tr != nil && tr.State == transcript.TurnEnded
	})
	return h.view(conv).Turn(turn)
}

func texts(t *transcript.Transcript) []string {
	var out []string
	for _, m := range t.Messages {
		out = append(out, string(m.Role)+": "+m.Visible())
	}
	return out
}

func wantTexts(t *testing.T, tr *transcript.Transcript, want ...string) {
	t.Helper()
	if got := texts(tr); !slices.Equal(got, want) {
		t.Errorf("transcript\n got %q\nwant %q", got, want)
	}
}

func wantOutcome(t *testing.T, turn *transcript.Turn, o event.Outcome, code string) {
	t.Helper()
	got := ""
	if turn.Error != nil {
		got = turn.Error.Code
	}
	if turn.Outcome != o || got != code {
		t.Errorf("turn ended as %s %q, want %s %q", turn.Outcome, got, o, code)
	}
}
