package agui

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

const runRoute = "/agui/agent/eliza/run"

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

// The end of the gateway is an error, which closes everything, and no broken connection.
func TestShutdown(t *testing.T) {
	h := newHarness(t, gated(nil), quota.Limits{})
	res := h.Send("alice", http.MethodPost, runRoute, question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	stream := readUntil(t, r, "first")
	h.Server.Close()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{}
	c.run(t, []byte(stream+string(rest)))
	if c.failure != textRestarting {
		t.Errorf("the stream ends with %s", rest)
	}
}

// A response in the binary form is closed in the same way.
//
// It has no line breaks, so it is read byte by byte until the text is there.
func TestBinaryShutdown(t *testing.T) {
	h := newHarness(t, gated(nil), quota.Limits{})
	res := h.Do("alice", http.MethodPost, runRoute, question("c", "m1", "hi"), http.Header{"Accept": {binaryType}})
	if got := res.Header.Get("Content-Type"); got != binaryType {
		t.Errorf("the type is %q", got)
	}
	r := bufio.NewReader(res.Body)
	var all []byte
	for !strings.Contains(string(all), "first") {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	h.Server.Close()
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), textRestarting) {
		t.Errorf("%v: the stream ends with %q", err, rest)
	}
}

// Streams that pause have comments, and the headers that keep proxies from buffering.
func TestKeepAlive(t *testing.T) {
	gate := make(chan struct{})
	h := newHarness(t, gated(gate), quota.Limits{})
	res := h.Send("alice", http.MethodPost, runRoute, question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	readUntil(t, r, "first")
	readUntil(t, r, keepAlive[:len(keepAlive)-1])
	close(gate)
	readUntil(t, r, runFinished)
	for name, want := range map[string]string{"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// An answer that is removed while it is streamed has an end.
func TestRemoved(t *testing.T) {
	h := newHarness(t, gated(nil), quota.Limits{})
	res := h.Send("alice", http.MethodPost, runRoute, question("c", "m1", "hi"))
	r := bufio.NewReader(res.Body)
	stream := readUntil(t, r, "first")
	alice := gateway.Principal{Subject: "alice"}
	if _, err := h.Gateway.Do(t.Context(), alice, res.Header.Get("Leat-Conversation"), gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{}
	c.run(t, []byte(stream+string(rest)))
	if c.ended != runFinished && c.ended != runError {
		t.Errorf("the stream ends with %s", rest)
	}
}

// A page that comes back after an answer has failed sees that it failed. The next answer succeeds.
func TestFailedBefore(t *testing.T) {
	isBroken := true
	h := newHarness(t, agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("so far"); err != nil || !isBroken {
			return err
		}
		return &agent.Error{Code: "overloaded", Message: "The model is busy."}
	}), quota.Limits{})
	c := &client{}
	run := func(route, body string) {
		t.Helper()
		c.run(t, []byte(h.Ask(http.StatusOK, "alice", http.MethodPost, route, body)))
	}
	connect := func() { t.Helper(); run("/agui/agent/eliza/connect", `{"threadId":"c","runId":"r"}`) }
	connect()
	if c.ended != runFinished {
		t.Errorf("a new thread ends with %s", c.ended)
	}
	for _, again := range []func(){func() { run(runRoute, question("c", "m1", "hi")) }, connect, connect} {
		again()
		if c.failure != "The model is busy." {
			t.Errorf("the run ends with %s %q", c.ended, c.failure)
		}
	}
	isBroken = false
	for _, again := range []func(){func() { run(runRoute, question("c", "m2", "again")) }, connect} {
		again()
		if c.ended != runFinished || c.outcome == nil || c.outcome.Type != "success" {
			t.Errorf("the run ends with %s %q", c.ended, c.failure)
		}
	}
}

// Only a turn that has ended has an outcome to show, and turns inside another one don't count.
func TestLastEnded(t *testing.T) {
	failed := &transcript.Turn{ID: "failed", State: transcript.TurnEnded, Outcome: event.Failed}
	inner := &transcript.Turn{ID: "inner", Parent: "failed", State: transcript.TurnEnded, Outcome: event.Completed}
	running := &transcript.Turn{ID: "running", State: transcript.TurnRunning}
	for want, turns := range map[string][]*transcript.Turn{"failed": {failed, inner}, "": {failed, running}} {
		got := ""
		if turn := lastEnded(&transcript.Transcript{Turns: turns}); turn != nil {
			got = turn.ID
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if turn := lastEnded(&transcript.Transcript{}); turn != nil {
		t.Errorf("a conversation without turns has %q", turn.ID)
	}
}

// A client that disconnects stops nothing. One that asked for it stops its turn.
//
// The gateway notices a lost connection by itself, at a time that the test can't know. Its place in the limit of viewers tells when.
func TestDisconnect(t *testing.T) {
	for query, want := range map[string]event.Outcome{"": event.Completed, "?on_disconnect=continue": event.Completed, "?on_disconnect=stop": event.Cancelled} {
		gate := make(chan struct{})
		h := newHarness(t, gated(gate), quota.Limits{Viewers: 1})
		res := h.Send("alice", http.MethodPost, runRoute+query, question("c", "m1", "hi"))
		readUntil(t, bufio.NewReader(res.Body), "first")
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		// The limit is one viewer, so another one is admitted when the gateway has noticed that the first one is gone.
		for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; {
			again := h.Send("alice", http.MethodPost, "/agui/agent/eliza/connect", `{"threadId":"new","runId":"r"}`)
			status = again.StatusCode
			_ = again.Body.Close()
		}
		close(gate)
		if got := h.outcome(res.Header.Get("Leat-Conversation")); got != want {
			t.Errorf("%s: the turn is %s, want %s", query, got, want)
		}
	}
}

// outcome waits for the end of a conversation's only turn.
func (h *harness) outcome(conversation string) (got event.Outcome) {
	h.T.Helper()
	f, err := h.Gateway.Feed(h.T.Context(), gateway.Principal{Subject: "alice"}, conversation)
	if err != nil {
		h.T.Fatal(err)
	}
	defer f.Release()
	for got == "" {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { got = tr.Turns[0].Outcome })
		if got == "" {
			<-changed
		}
	}
	return got
}
