package voice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
	surface "github.com/leat-dev/leat/internal/server/voice"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/voice/voicetest"
	"github.com/leat-dev/leat/internal/voice/wire"
	"github.com/leat-dev/leat/transcript"
)

const secret = "a secret of this test, as long as it has to be"

var alice, bob = gateway.Principal{Subject: "alice"}, gateway.Principal{Subject: "bob"}

// writer is an agent whose answers the test writes: each value is a growth, and a closed channel ends the turn. "!" fails it.
type writer struct {
	inputs chan agent.Input
	texts  chan string
	ended  chan error
}

func (w *writer) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	w.inputs <- in
	err := w.write(ctx, out)
	w.ended <- context.Cause(ctx)
	return err
}

func (w *writer) write(ctx context.Context, out *agent.Emitter) error {
	for {
		select {
		case text := <-w.texts:
			switch text {
			case "":
				return nil
			case "!":
				return &agent.Error{Code: "broken", Message: "The model is broken."}
			case "?":
				if err := out.Reasoning("This is secret."); err != nil {
					return err
				}
				continue
			}
			if err := out.Text(text); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// harness is a gateway with the surface.
type harness struct {
	t      *testing.T
	gw     *gateway.Gateway
	agent  *writer
	srv    *server.Server
	ts     *httptest.Server
	engine *voicetest.Engine
	id     string // of a conversation of alice
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, agent: &writer{make(chan agent.Input, 10), make(chan string, 100), make(chan error, 10)}, engine: &voicetest.Engine{}}
	var err error
	if h.gw, err = gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: h.agent}}, DefaultAgent: "a", Settings: gateway.Settings{Drain: time.Millisecond},
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	users, err := auth.New(auth.Config{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	h.srv = server.New(server.Options{Users: users})
	surface.Register(h.srv, h.gw, wire.New(wire.Options{Engine: h.engine, Log: slog.New(slog.DiscardHandler)}), true)
	h.ts = httptest.NewServer(h.srv)
	t.Cleanup(func() {
		h.srv.Close()
		if err := h.gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		h.ts.Close()
	})
	s, _, err := h.gw.Create(t.Context(), alice, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.id = s.ID
	return h
}

func (h *harness) token(p gateway.Principal, life time.Duration) string {
	h.t.Helper()
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": p.Subject, "exp": time.Now().Add(life).Unix()}).SignedString([]byte(secret))
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// client is a voice client.
type client struct {
	t      *testing.T
	socket *websocket.Conn
}

// dial connects. If the handshake is refused, it returns the status.
func (h *harness) dial(p gateway.Principal, life time.Duration, query string, header ...string) (*client, int) {
	h.t.Helper()
	o := &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token(p, life)}}}
	for i := 0; i < len(header); i += 2 {
		o.HTTPHeader.Set(header[i], header[i+1])
	}
	socket, res, err := websocket.Dial(h.t.Context(), "ws"+strings.TrimPrefix(h.ts.URL, "http")+"/api/conversations/"+h.id+"/voice?"+query, o)
	if err != nil {
		if res == nil {
			h.t.Fatal(err)
		}
		return nil, res.StatusCode
	}
	h.t.Cleanup(func() { _ = socket.CloseNow() })
	return &client{h.t, socket}, res.StatusCode
}

func (h *harness) client(query string) *client {
	h.t.Helper()
	c, status := h.dial(alice, time.Hour, query)
	if c == nil {
		h.t.Fatalf("refused with %d", status)
	}
	return c
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if err := c.socket.Write(c.t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

type frame struct {
	Type, State, Turn, Text, Code, Message string
	Detector                               bool
	Start                                  int
	Sample                                 int64
}

// until reads up to a frame whose type, state, code or text is want; "flush" is a flush. It returns the PCM before it.
func (c *client) until(want string) (f frame, pcm int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		kind, b, err := c.socket.Read(ctx)
		f = frame{}
		switch {
		case err != nil:
			c.t.Fatalf("no %s: %v", want, err)
		case kind == websocket.MessageBinary && len(b) == 1:
			f.Type = "flush"
		case kind == websocket.MessageBinary:
			pcm += len(b)
			continue
		default:
			if err := json.Unmarshal(b, &f); err != nil {
				c.t.Error(err)
			}
		}
		if f.Type == want || f.State == want || f.Code == want || f.Text == want {
			return f, pcm
		}
	}
}

// code reads up to the end, and returns its code.
func (c *client) code() websocket.StatusCode {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		if _, _, err := c.socket.Read(ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func bytesOf(text string) int { return 2 * len([]rune(text)) * voicetest.SamplesPerRune }

// A message runs a turn, and its visible answer is spoken.
func TestTalk(t *testing.T) {
	h := newHarness(t)
	c := h.client("")
	if f, _ := c.until("ready"); !f.Detector {
		t.Errorf("%+v doesn't offer the speech detector", f)
	}
	c.send(`{"type":"text","text":"Hello","key":"k"}`)
	if in := <-h.agent.inputs; in.Message.Text != "Hello" || in.Principal.Subject != "alice" {
		t.Errorf("%+v", in)
	}
	c.until("thinking")
	for _, text := range []string{"?", "This is", " the answer.", ""} {
		h.agent.texts <- text
	}
	c.until("speaking")
	c.until("This is the answer.")
	if _, pcm := c.until("stream_done"); pcm != bytesOf("This is the answer.") {
		t.Errorf("%d bytes", pcm)
	}
	c.until("listening")
	if u := h.engine.Utterances(); len(u) != 1 {
		t.Errorf("spoken: %+v", u)
	}
}

// An interruption stops the turn, and the agent gets how far its answer was heard. If another user follows, the turn continues.
func TestInterrupt(t *testing.T) {
	h := newHarness(t)
	c := h.client("")
	c.send(`{"type":"text","text":"Hello"}`)
	<-h.agent.inputs
	h.agent.texts <- "This is the answer of the agent. It is long. "
	_, _ = c.until("caption")
	for heard := 0; heard < bytesOf("This is the answer"); {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		kind, b, err := c.socket.Read(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.MessageBinary {
			heard += len(b)
		}
	}
	c.send(`{"type":"interrupt","played":%d,"generation":1}`, bytesOf("This is the answe")/2)
	c.until("flush")
	c.until("listening")
	if err := <-h.agent.ended; err == nil {
		t.Error("the turn wasn't stopped")
	}
	c.send(`{"type":"text","text":"What?"}`)
	if in := <-h.agent.inputs; !strings.HasSuffix(in.Message.Text, "up to: \"This is the\"]\n\nWhat?") {
		t.Errorf("the agent got %q", in.Message.Text)
	}

	if _, err := h.gw.Do(t.Context(), alice, h.id, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessRead}); err != nil {
		t.Fatal(err)
	}
	guest, err := h.gw.Feed(t.Context(), bob, h.id)
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Release()
	h.agent.texts <- "Another answer is here. "
	c.until("caption")
	c.send(`{"type":"interrupt","played":0}`)
	c.until("flush")
	h.agent.texts <- "It goes on."
	h.agent.texts <- ""
	if err := <-h.agent.ended; err != nil {
		t.Errorf("the turn ended with %v", err)
	}
	for isOver := false; !isOver; {
		changed := guest.Notify()
		guest.View(func(tr *transcript.Transcript) {
			last := tr.Messages[len(tr.Messages)-1]
			isOver = !tr.Turn(last.Turn).Unfinished()
			if isOver && last.Visible() != "Another answer is here. It goes on." {
				t.Errorf("the transcript has %q", last.Visible())
			}
		})
		if !isOver {
			<-changed
		}
	}
}

// A connection that was lost is resumed within the sentence, also after the end of the turn. A new client hears a running answer from its
// beginning, and none that has ended.
func TestResume(t *testing.T) {
	h := newHarness(t)
	c := h.client("")
	c.send(`{"type":"text","text":"Hello"}`)
	<-h.agent.inputs
	h.agent.texts <- "This is the first sentence of the answer. "
	caption, _ := c.until("caption")
	_ = c.socket.CloseNow()
	h.agent.texts <- "And this is the second one."
	c = h.client("")
	c.until("This is the first sentence of the answer.")
	_ = c.socket.CloseNow()
	h.agent.texts <- ""
	<-h.agent.ended
	c = h.client(fmt.Sprintf("after=%s:%d:%d", caption.Turn, caption.Start, 4800))
	if first, _ := c.until("caption"); first.Sample != -4800 || first.Start != caption.Start {
		t.Errorf("%+v", first)
	}
	if _, pcm := c.until("stream_done"); pcm != bytesOf("This is the first sentence of the answer.And this is the second one.")-9600 {
		t.Errorf("%d bytes", pcm)
	}
	_ = c.socket.CloseNow()
	c = h.client("")
	c.send(`{"type":"ping"}`)
	if _, pcm := c.until("pong"); pcm != 0 {
		t.Errorf("%d bytes of an answer that has ended", pcm)
	}
}

// A turn that fails ends its answer with the reason.
func TestTurnEnds(t *testing.T) {
	h := newHarness(t)
	c := h.client("")
	c.send(`{"type":"text","text":"Hello"}`)
	<-h.agent.inputs
	c.until("thinking")
	h.agent.texts <- "!"
	if f, _ := c.until("turn_failed"); f.Message != "The model is broken." || f.Turn == "" {
		t.Errorf("%+v", f)
	}
	<-h.agent.ended
	c.until("listening")
	c.send(`{"type":"text","text":""}`)
	c.until("invalid")
}

// Access is that of the other routes: strangers learn nothing, readers can only listen, and who loses access is disconnected.
func TestAccess(t *testing.T) {
	h := newHarness(t)
	if _, status := h.dial(bob, time.Hour, ""); status != http.StatusNotFound {
		t.Errorf("a stranger gets %d", status)
	}
	if _, status := h.dial(alice, time.Hour, "", "Origin", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("another site gets %d", status)
	}
	if _, status := h.dial(alice, time.Hour, "vad=x"); status != http.StatusBadRequest {
		t.Errorf("an invalid query gets %d", status)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.ts.URL+"/api/conversations/"+h.id+"/voice", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token(alice, time.Hour))
	res, err := h.ts.Client().Do(r)
	if err != nil || res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a plain request: %v %v", res, err)
	}
	_ = res.Body.Close()

	if _, err := h.gw.Do(t.Context(), alice, h.id, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessRead}); err != nil {
		t.Fatal(err)
	}
	c, _ := h.dial(bob, time.Hour, "")
	c.send(`{"type":"text","text":"May I?"}`)
	if f, _ := c.until("not_sent"); !strings.Contains(f.Message, "forbidden") {
		t.Errorf("%+v", f)
	}
	if _, err := h.gw.Do(t.Context(), alice, h.id, gateway.Command{Type: gateway.CommandUnshare, Subject: "bob"}); err != nil {
		t.Fatal(err)
	}
	if code := c.code(); code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d after the access was revoked", code)
	}
	c, _ = h.dial(alice, time.Second, "")
	if code := c.code(); code != 4001 {
		t.Errorf("closed with %d at the end of the token", code)
	}
	c = h.client("")
	c.until("ready")
	h.srv.Close()
	if code := c.code(); code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d at a restart", code)
	}
}
