//go:build unix

package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/service/plugins"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// TestMain also runs the test binary as the channel's process. It copies its input to the test and the test's output to its own,
// over a socket.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		child(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

func child(socket string) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	go func() {
		_, _ = io.Copy(os.Stdout, c)
		os.Exit(4) // the test has closed the socket
	}()
	_, _ = io.Copy(c, os.Stdin)
}

// puppet accepts the connections of a channel's processes.
type puppet struct {
	t *testing.T
	l net.Listener
	p plugins.Plugin
}

func newPuppet(t *testing.T, name string) *puppet {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := fmt.Sprintf("#!/bin/sh\nexec '%s' child '%s'\n", self, l.Addr())
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte(run), 0o700); err != nil {
		t.Fatal(err)
	}
	return &puppet{t, l, plugins.Plugin{Dir: dir, Manifest: plugins.Manifest{Protocol: 1, Name: name, Version: "1", Kind: plugins.KindChannel, Command: []string{"./run"}}}}
}

// actor is the test's side of one process.
type actor struct {
	t     *testing.T
	c     net.Conn
	lines chan line
}

// line is a line that the gateway sent.
type line struct {
	Type, Chat, ID, Conversation, Turn, Reason, Message, Kind, Error string
	Cursor                                                           feed.Cursor
	State                                                            json.RawMessage
	Repeated                                                         bool
	Frame                                                            json.RawMessage
	raw                                                              string
}

// next waits for the next process and reports that it is ready.
func (p *puppet) next() *actor {
	p.t.Helper()
	return p.greeted(`{"type":"ready","protocol":1,"kind":"channel"}`)
}

// greeted waits for the next process and prints its first line.
func (p *puppet) greeted(ready string) *actor {
	p.t.Helper()
	c, err := p.l.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	a := &actor{p.t, c, make(chan line, 1000)}
	p.t.Cleanup(func() { _ = c.Close() })
	go func() {
		defer close(a.lines)
		in := bufio.NewScanner(c)
		in.Buffer(nil, 8<<20)
		for in.Scan() {
			l := line{raw: in.Text()}
			_ = json.Unmarshal(in.Bytes(), &l)
			a.lines <- l
		}
	}()
	if hello := a.want("hello"); hello.Kind != "channel" {
		p.t.Errorf("the first line was %s", hello.raw)
	}
	a.say("%s", ready)
	return a
}

func (a *actor) say(format string, args ...any) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.c, format+"\n", args...); err != nil {
		a.t.Fatal(err)
	}
}

// hear returns the next line. It fails the test if none arrives.
func (a *actor) hear() line {
	a.t.Helper()
	select {
	case l, ok := <-a.lines:
		if !ok {
			a.t.Fatal("the process was stopped")
		}
		return l
	case <-time.After(time.Minute):
		a.t.Fatal("no further line arrived")
	}
	return line{}
}

// want returns the next line, which must have that type.
func (a *actor) want(kind string) line {
	a.t.Helper()
	l := a.hear()
	if l.Type != kind {
		a.t.Fatalf("got %s, want %s", l.raw, kind)
	}
	return l
}

// those returns the next lines, which must be of the given types, in any order.
func (a *actor) those(kinds ...string) map[string]line {
	a.t.Helper()
	got := map[string]line{}
	for range kinds {
		l := a.hear()
		got[l.Type] = l
	}
	for _, k := range kinds {
		if _, ok := got[k]; !ok {
			a.t.Fatalf("no %s line arrived: %v", k, got)
		}
	}
	return got
}

// cut ends the process.
func (a *actor) cut() { _ = a.c.Close() }

// send sends a person's message in a chat.
func (a *actor) send(id, chat, text string) {
	a.t.Helper()
	a.say(`{"type":"command","id":%q,"chat":%q,"command":{"type":"send","message":{"text":%q,"author":{"name":"Ann"}}}}`, id, chat, text)
}

// stopped reports that the gateway has stopped the process, after an error that it returns.
func (a *actor) stopped() (last line) {
	a.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case l, ok := <-a.lines:
			if !ok {
				return last
			}
			last = l
		case <-limit:
			a.t.Fatal("the process was not stopped")
		}
	}
}

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

func echo(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("you said " + in.Message.Text)
}

type harness struct {
	t     *testing.T
	gw    *gateway.Gateway
	host  *host.Host
	close func()
	// failures are the failed deliveries that were reported.
	failures chan host.Failure
}

// newHarness opens a gateway over a journal with channels.
func newHarness(t *testing.T, j journal.Journal, a agent.Agent, channels ...*puppet) *harness {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(quiet)
	if err := roster.Add("a", gateway.Agent{Agent: a}); err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, failures: make(chan host.Failure, 10)}
	report := func(_ context.Context, f host.Failure) error { h.failures <- f; return nil }
	h.host = host.New(host.Config{Roster: roster, Dialect: leat.Dialect(), Journal: j, ReportFailure: report, Log: quiet})
	var err error
	h.gw, err = gateway.New(gateway.Config{Journal: j, Agents: roster, DefaultAgent: "a", Hooks: gateway.Hooks{Watchers: []gateway.Watcher{h.host}}, Settings: gateway.Settings{Drain: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	roster.Start()
	if err := h.gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range channels {
		if err := h.host.Run(p.p); err != nil {
			t.Fatal(err)
		}
	}
	h.host.Start(h.gw)
	h.close = sync.OnceFunc(func() {
		if err := h.gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		h.host.Close()
		roster.Close()
	})
	t.Cleanup(h.close)
	return h
}

func newJournal(t *testing.T) journal.Journal {
	j := memory.New()
	t.Cleanup(func() { _ = j.Close() })
	return j
}
