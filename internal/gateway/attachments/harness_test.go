package attachments_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	admin = gateway.Principal{Admin: true}
	alice = gateway.Principal{Tenant: "t1", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}
	bob   = gateway.Principal{Tenant: "t1", Subject: "bob"}
)

// agentFunc is an agent made of one function.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// faultyJournal is a journal whose commits can be made to fail.
type faultyJournal struct {
	journal.Journal
	err atomic.Pointer[error]
}

func (f *faultyJournal) Append(ctx context.Context, b journal.Batch) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Journal.Append(ctx, b)
}

// options change the gateway and the limits of a harness.
type options struct {
	agent   agent.Agent
	journal journal.Journal
	maxFile int64
	config  func(*gateway.Config)
}

// harness is a gateway with attachments in a folder.
type harness struct {
	t *testing.T
	*gateway.Gateway
	*attachments.Service
	journal *faultyJournal
}

func newHarness(t *testing.T, dir string, opt options) *harness {
	t.Helper()
	d, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if opt.journal == nil {
		opt.journal = memory.New()
	}
	j := &faultyJournal{Journal: opt.journal}
	store := attachments.NewStore(attachments.Config{Journal: j, Files: d, MaxFile: opt.maxFile})
	c := gateway.Config{Journal: j, Attachments: store}
	if opt.agent != nil {
		c.Agents, c.DefaultAgent = gateway.Agents{"a": {Agent: opt.agent}}, "a"
	}
	if opt.config != nil {
		opt.config(&c)
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &harness{t, g, attachments.NewService(store, g), j}
}

func (h *harness) close() {
	h.t.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		h.t.Error("shutdown:", err)
	}
}

func (h *harness) create(p gateway.Principal) string {
	h.t.Helper()
	s, _, err := h.Create(h.t.Context(), p, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func (h *harness) do(conversation string, c gateway.Command) gateway.Ack {
	h.t.Helper()
	ack, err := h.Do(h.t.Context(), admin, conversation, c)
	if err != nil {
		h.t.Fatalf("%s: %v", c.Type, err)
	}
	return ack
}

func (h *harness) refused(conversation string, c gateway.Command, reason string) {
	h.t.Helper()
	_, err := h.Do(h.t.Context(), admin, conversation, c)
	var r *gateway.Rejection
	if !errors.As(err, &r) || r.Reason != reason {
		h.t.Errorf("%s: got %v, want a rejection for %s", c.Type, err, reason)
	}
}

// view folds the whole log of a conversation.
func (h *harness) view(conversation string) *transcript.Transcript {
	h.t.Helper()
	r, err := h.journal.Read(context.Background(), conversation, 0, 0)
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

// completed waits until a turn has ended, and fails the test unless it completed.
func (h *harness) completed(conversation, turn string) {
	h.t.Helper()
	f, err := h.Feed(h.t.Context(), admin, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	for {
		changed := f.Notify()
		var end *transcript.Turn
		f.View(func(t *transcript.Transcript) {
			if found := t.Turn(turn); found != nil && !found.Unfinished() {
				end = new(*found)
			}
		})
		if end != nil {
			if end.Outcome != event.Completed {
				h.t.Errorf("turn ended as %s: %+v", end.Outcome, end.Error)
			}
			return
		}
		select {
		case <-changed:
		case <-h.t.Context().Done():
			h.t.Fatal("turn did not end")
		}
	}
}
