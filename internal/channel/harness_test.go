package channel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

func echo(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("you said " + in.Message.Text)
}

// delivery is one call of SendStream, which the test answers.
type delivery struct {
	chat     string
	metadata channel.StreamMetadata
	events   <-chan channel.StreamEvent
	ctx      context.Context
	result   chan error
}

// final receives everything and returns the final text.
func (d *delivery) final(t *testing.T) string {
	t.Helper()
	s := channel.NewStream(d.metadata.Turn)
	for e := range d.events {
		if err := s.Apply(e); err != nil {
			t.Error(err)
		}
	}
	return s.Final()
}

// sink is a channel whose messages the test writes and reads.
type sink struct {
	name         string
	capabilities channel.CapabilitySet
	inbox        chan channel.Inbox
	sent         chan channel.OutboundMessage
	fail         error // of Send
}

func newSink(name string) *sink {
	return &sink{name: name, inbox: make(chan channel.Inbox, 1), sent: make(chan channel.OutboundMessage, 100)}
}

func (s *sink) Name() string { return s.name }

func (s *sink) Platform() string { return "test" }

func (s *sink) Run(ctx context.Context, inbox channel.Inbox) error {
	s.inbox <- inbox
	<-ctx.Done()
	return nil
}

func (s *sink) Send(_ context.Context, m channel.OutboundMessage) error {
	s.sent <- m
	return s.fail
}

func (s *sink) Capabilities() channel.CapabilitySet { return s.capabilities }

// streamSink is a sink that streams.
type streamSink struct {
	*sink
	streams chan *delivery
}

func newStreamSink(name string) *streamSink {
	return &streamSink{newSink(name), make(chan *delivery, 100)}
}

func (s *streamSink) SendStream(ctx context.Context, chat string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	d := &delivery{chat, metadata, events, ctx, make(chan error, 1)}
	s.streams <- d
	select {
	case err := <-d.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// harness is a gateway with channels.
type harness struct {
	t        *testing.T
	gw       *gateway.Gateway
	pipeline *channel.Pipeline
	failures chan channel.StreamFailed
	close    func()
	n        int
}

func newJournal(t *testing.T) journal.Journal {
	j := memory.New()
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// open starts a gateway over a journal. The person "ann" may talk to its channels.
func open(t *testing.T, j journal.Journal, a agent.Agent, channels ...channel.Channel) *harness {
	t.Helper()
	return openWith(t, j, a, nil, channels...)
}

// openWith is open with a store of files.
func openWith(t *testing.T, j journal.Journal, a agent.Agent, files channel.Files, channels ...channel.Channel) *harness {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(quiet)
	for _, name := range []string{"a", "b"} {
		if err := roster.Add(name, gateway.Agent{Agent: a}); err != nil {
			t.Fatal(err)
		}
	}
	h := &harness{t: t, failures: make(chan channel.StreamFailed, 10)}
	h.pipeline = channel.New(channel.Config{Journal: j, Log: quiet, Voice: testVoice, ReportFailure: func(_ context.Context, f channel.StreamFailed) error {
		h.failures <- f
		return nil
	}})
	for _, c := range channels {
		h.pipeline.Add(c, channel.Options{Allow: []string{"ann"}})
	}
	var err error
	h.gw, err = gateway.New(gateway.Config{Journal: j, Agents: roster, DefaultAgent: "a", Hooks: gateway.Hooks{Watchers: []gateway.Watcher{h.pipeline}}, Settings: gateway.Settings{Drain: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	roster.Start()
	if err := h.gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.pipeline.Start(t.Context(), h.gw, files); err != nil {
		t.Fatal(err)
	}
	h.close = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		h.pipeline.Shutdown(ctx)
		if err := h.gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		roster.Close()
	})
	t.Cleanup(h.close)
	return h
}

// receive waits for a value and fails the test if none arrives in 20 s.
func receive[V any](t *testing.T, from <-chan V, what string) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("no %s in 20 s", what)
		panic("unreachable")
	}
}

// say passes a message of a person to a channel.
func (h *harness) say(inbox channel.Inbox, m channel.InboundMessage) {
	h.t.Helper()
	h.n++
	if m.ID == "" {
		m.ID = fmt.Sprintf("m%d", h.n)
	}
	if m.SenderID == "" {
		m.SenderID, m.SenderName = "ann", "Ann"
	}
	if m.ChatID == "" {
		m.ChatID = "c1"
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = time.UnixMilli(1700000000000 + int64(h.n))
	}
	if m.Hints.Command == "" {
		m.Hints.Command, m.Hints.Args = channel.ParseCommand(m.Content)
	}
	if err := inbox.Receive(h.t.Context(), m); err != nil {
		h.t.Errorf("receive: %v", err)
	}
}

// state decodes a saved state.
func state(t *testing.T, raw json.RawMessage) (s string) {
	t.Helper()
	if raw == nil {
		return ""
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Error(err)
	}
	return s
}
