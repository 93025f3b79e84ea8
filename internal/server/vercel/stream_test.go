package vercel

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/transcript"
)

// gated is an agent that writes, waits until the gate is closed, and writes more.
func gated(gate <-chan struct{}) agent.Agent {
	return agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := errors.Join(out.Text("first "), out.Flush()); err != nil {
			return err
		}
		select {
		case <-gate:
			return out.Text("second")
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// readUntil reads a stream until it contains a text.
func readUntil(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), want) {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v, after %s", err, all.String())
		}
		all.WriteString(line)
	}
	return all.String()
}

// The end of the gateway doesn't look like the end of an answer.
func TestShutdown(t *testing.T) {
	h := newHarness(t, gated(nil), quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	readUntil(t, r, "first")
	h.Server.Close()
	rest, err := io.ReadAll(r)
	if err == nil {
		t.Errorf("the stream ends with %s", rest)
	}
	if strings.Contains(withoutComments(string(rest)), "data:") {
		t.Errorf("the stream ends with %s", rest)
	}
}

// Streams that pause have comments, and the headers that keep proxies from buffering.
func TestKeepAlive(t *testing.T) {
	gate := make(chan struct{})
	h := newHarness(t, gated(gate), quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	readUntil(t, r, "first")
	readUntil(t, r, keepAlive)
	close(gate)
	readUntil(t, r, endOfStream)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "X-Vercel-Ai-Ui-Message-Stream": "v1", "X-Accel-Buffering": "no",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// HEAD of a stream has headers only.
func TestHead(t *testing.T) {
	gate := make(chan struct{})
	h := newHarness(t, gated(gate), quota.Limits{})
	first := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	r := bufio.NewReader(first.Body)
	readUntil(t, r, "first")
	if text := h.Ask(http.StatusOK, "alice", http.MethodHead, "/api/chat/c/stream", ""); text != "" {
		t.Errorf("got %s", text)
	}
	close(gate)
	readUntil(t, r, endOfStream)
}

// An answer that is removed while it is streamed ends with a sentence.
func TestRemoved(t *testing.T) {
	h := newHarness(t, gated(nil), quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	readUntil(t, r, "first")
	alice := gateway.Principal{Subject: "alice"}
	if _, err := h.Gateway.Do(t.Context(), alice, res.Header.Get("Leat-Conversation"), gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.HasSuffix(string(rest), endOfStream) {
		t.Errorf("%v: the stream ends with %s", err, rest)
	}
}

// A client that disconnects stops nothing. One that asked for it stops its turn.
func TestDisconnect(t *testing.T) {
	for query, want := range map[string]event.Outcome{"": event.Completed, "?on_disconnect=continue": event.Completed, "?on_disconnect=stop": event.Cancelled} {
		gate := make(chan struct{})
		h := newHarness(t, gated(gate), quota.Limits{Viewers: 1})
		res := h.Send("alice", http.MethodPost, "/api/chat"+query, question("c", "m1", "hi"))
		readUntil(t, bufio.NewReader(res.Body), "first")
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		// The limit is one viewer, so another one is admitted when the gateway has noticed that the first one is gone.
		for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; {
			again := h.Send("alice", http.MethodHead, "/api/chat/c/stream", "")
			status = again.StatusCode
			_ = again.Body.Close()
		}
		close(gate)
		if got := h.outcome(res); got != want {
			t.Errorf("%s: the turn is %s, want %s", query, got, want)
		}
	}
}

// outcome waits for the end of a response's turn.
func (h *harness) outcome(res *http.Response) (got event.Outcome) {
	h.T.Helper()
	f, err := h.Gateway.Feed(h.T.Context(), gateway.Principal{Subject: "alice"}, res.Header.Get("Leat-Conversation"))
	if err != nil {
		h.T.Fatal(err)
	}
	defer f.Release()
	for got == "" {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { got = tr.Turn(res.Header.Get("Leat-Turn")).Outcome })
		if got == "" {
			<-changed
		}
	}
	return got
}
