package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
)

// listener takes messages into its running turn, but for those that begin with "no".
type listener struct{ more chan string }

func (l listener) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	if in.Message.Text != "begin" {
		return out.Text("later: " + in.Message.Text)
	}
	select {
	case text := <-l.more:
		return out.Text("meanwhile: " + text)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l listener) Steer(_ context.Context, _ agent.Input, m agent.Message) error {
	if strings.HasPrefix(m.Text, "no") {
		return agent.ErrNotSteered
	}
	l.more <- m.Text
	return nil
}

// TestSteering sends messages to a running turn, over HTTP and over a socket. The sender learns whether the turn accepted the
// message.
func TestSteering(t *testing.T) {
	ts := viewersOf(t, listener{make(chan string, 1)})
	streamOf(t, ts, http.MethodPost, "/api/conversations", "", `{"id":"c"}`).all()
	const path = "/api/conversations/c/commands"
	send := func(text string) string {
		return streamOf(t, ts, http.MethodPost, path, "", `{"type":"send","message":{"text":"`+text+`"}}`).all()
	}
	begun := send("begin")
	if !strings.Contains(begun, `"state":"started"`) {
		t.Fatal(begun)
	}
	_, turn, _ := strings.Cut(begun, `"turn":"`)
	turn, _, _ = strings.Cut(turn, `"`)
	if ack := send("no, another thing"); !strings.Contains(ack, `"state":"queued"`) || strings.Contains(ack, turn) {
		t.Errorf("not taken: %s", ack)
	}
	s := dial(t, ts, "/api/ws")
	s.write(`{"type":"command","id":"1","conversation":"c","command":{"type":"send","message":{"text":"hurry up"}}}`)
	if ack := s.until(`"id":"1"`); !strings.Contains(ack, `"state":"steered"`) || !strings.Contains(ack, turn) {
		t.Errorf("taken: %s", ack)
	}
	reader := streamOf(t, ts, http.MethodGet, "/api/conversations/c/events", "application/x-ndjson", "")
	reader.until("later: no, another thing")
	if !strings.Contains(reader.seen.String(), "meanwhile: hurry up") {
		t.Errorf("the turn did not continue with the message:\n%s", reader.seen.String())
	}
}
