package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent/demo"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// waitLimit is how long a test waits for output that must appear. It is long because the machine may be busy.
const waitLimit = time.Minute

// serveHere runs a gateway in this process and returns its address.
func serveHere(t *testing.T) string {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal:      memory.New(),
		Agents:       gateway.Agents{"demo": {Agent: demo.New(demo.Config{})}, "human": {Agent: demo.New(demo.Config{Speed: 1})}},
		DefaultAgent: "demo",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{})
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		if err := gw.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// talker is a session of leat chat whose input and interrupts come from a test.
type talker struct {
	t        *testing.T
	s        *session
	lines    chan string
	signals  chan os.Signal
	out      lockedBuffer
	finished chan error
}

func newTalker(t *testing.T, agent string) *talker {
	t.Helper()
	return newTalkerToldBy(t, agent, make(chan struct{}, 1))
}

// newTalkerToldBy is newTalker with the channel that reports updates to the session. If it is nil, the session gets no report.
func newTalkerToldBy(t *testing.T, agent string, changed chan struct{}) *talker {
	t.Helper()
	k := &talker{t: t, lines: make(chan string), signals: make(chan os.Signal, 2), finished: make(chan error, 1)}
	a := &app{ctx: t.Context(), in: &bytes.Buffer{}, stdout: &k.out, stderr: &k.out, lookup: func(string) (string, bool) { return "", false }}
	k.s = &session{
		app: a, client: &leat.Client{URL: serveHere(t)}, ownMessages: map[string]bool{}, changed: changed,
		screen: newScreen(&k.out, terminal{}, 80),
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := k.s.open(ctx, "", agent); err != nil {
		t.Fatal(err)
	}
	followed := make(chan error, 1)
	go func() { followed <- k.s.follow(ctx) }()
	go func() { k.finished <- k.s.talk(ctx, "", k.lines, k.signals, followed) }()
	t.Cleanup(cancel)
	return k
}

func (k *talker) types(line string) {
	k.t.Helper()
	select {
	case k.lines <- line:
	case err := <-k.finished:
		k.t.Fatalf("the session has ended: %v\n%s", err, k.out.String())
	case <-time.After(waitLimit):
		k.t.Fatalf("the session does not read %q\n%s", line, k.out.String())
	}
}

// sees waits until the screen shows a text after the texts that earlier calls found.
func (k *talker) sees(text string) {
	k.t.Helper()
	late := time.After(waitLimit)
	for {
		changed := k.out.changed()
		if strings.Contains(k.out.String(), text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			k.t.Fatalf("%q does not appear:\n%s", text, k.out.String())
		}
	}
}

func TestTalk(t *testing.T) {
	k := newTalker(t, "demo")
	k.sees("› ")
	k.types("What is 6 * 7?")
	k.sees("**6 * 7 = 42**")
	k.types("")
	k.types("ask sing a song")
	k.sees("? May I sing a song? [approve/deny]")
	k.types("yes")
	k.sees("> carries the stream")
	k.types("ask dance")
	k.sees("? May I dance?")
	k.types("not today")
	k.sees("with a reason: not today")
	k.types("error")
	k.sees("✗ failed: the demo agent failed, as it was asked to")
	if n := strings.Count(k.out.String(), "What is 6 * 7?"); n != 0 {
		t.Errorf("the typed message is shown %d times more", n)
	}
	conv, err := k.s.client.Conversation(t.Context(), k.s.conversation)
	if err != nil || conv.Title != "What is 6 * 7?" {
		t.Errorf("title %q, %v", conv.Title, err)
	}
	close(k.lines)
	if err := <-k.finished; err != nil {
		t.Error(err)
	}
}

// A line that is typed as soon as the question is on the screen answers the question, even if the session receives the line before the
// report of the question: two goroutines deliver them.
func TestAnswerAtOnce(t *testing.T) {
	k := newTalkerToldBy(t, "demo", nil)
	k.types("ask sing a song")
	k.sees("? May I sing a song? [approve/deny]")
	k.types("yes")
	k.sees("> carries the stream")
}

// The first interrupt stops the turn, the second ends the chat.
func TestInterrupt(t *testing.T) {
	k := newTalker(t, "human")
	k.types("long 5000")
	k.sees("taken apart")
	k.signals <- os.Interrupt
	k.sees("✗ cancelled")
	k.types("1+1")
	k.sees("calculation")
	k.signals <- os.Interrupt
	k.signals <- os.Interrupt
	select {
	case err := <-k.finished:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(waitLimit):
		t.Fatal("the second interrupt does not end the chat")
	}
	tr, err := k.s.client.Transcript(t.Context(), k.s.conversation)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range tr.Turns {
		if turn.Outcome != event.Cancelled {
			t.Errorf("turn %+v", turn)
		}
	}
}
