package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// chat is a conversation in memory. Each message of the person starts a turn, which the test writes with write.
type chat struct {
	mu       sync.Mutex
	speech   wire.Speech
	ready    chan struct{} // closed when a follower has begun
	orders   []string      // what the connection ordered, in order
	keys     map[string]bool
	ordered  chan struct{} // closed and replaced by each order
	watched  bool
	sendErr  error
	steers   string // the running turn takes messages
	lost     chan error
	resumed  string
	followed int
}

func newChat() *chat {
	return &chat{ready: make(chan struct{}), ordered: make(chan struct{}), keys: map[string]bool{}, lost: make(chan error, 1)}
}

var _ wire.Conversation = (*chat)(nil)

func (c *chat) Follow(ctx context.Context, speech wire.Speech, resume string) error {
	c.mu.Lock()
	c.speech, c.resumed = speech, resume
	c.followed++
	close(c.ready)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ready = make(chan struct{})
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-c.lost:
		return err
	}
}

func (c *chat) order(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, fmt.Sprintf(format, args...))
	close(c.ordered)
	c.ordered = make(chan struct{})
}

func (c *chat) Send(_ context.Context, key, text string) (wire.Delivery, error) {
	c.order("send %s", text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if key == "" || c.keys[key] {
		return wire.Delivery{}, fmt.Errorf("key %q", key)
	}
	c.keys[key] = true
	return wire.Delivery{SteeredTurn: c.steers}, c.sendErr
}

func (c *chat) Stop(_ context.Context, turn string) error { c.order("stop %s", turn); return nil }

func (c *chat) MarkHeard(_ context.Context, h voice.HeardMark) error {
	c.order("heard %s %d %v", h.Turn, h.Offset, h.IsWhole)
	return nil
}

func (c *chat) HasOtherViewers() bool { return c.watched }

// write passes the text of a turn.
func (c *chat) write(turn, text string, isEnded bool) {
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	<-ready
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speech.Update(turn, text, isEnded)
}

// await waits until as many orders were given as want has, and compares them.
func (c *chat) await(t testing.TB, want ...string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		c.mu.Lock()
		got, ordered := strings.Join(c.orders, ", "), c.ordered
		n := len(c.orders)
		c.mu.Unlock()
		if n >= len(want) {
			if got != strings.Join(want, ", ") {
				t.Errorf("orders: %s\nwant:   %s", got, strings.Join(want, ", "))
			}
			return
		}
		select {
		case <-ordered:
		case <-limit:
			t.Fatalf("orders: %s\nwant:   %s", got, strings.Join(want, ", "))
		}
	}
}

// served is a server of voice connections.
type served struct {
	t       testing.TB
	service *wire.Service
	chat    *chat
	address string
	ctx     context.Context
	stop    context.CancelFunc
	errs    chan error // of Serve
}

var errAccessLost = errors.New("access lost")

func serve(t testing.TB, o wire.Options) *served {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s := &served{t: t, service: wire.New(o), chat: newChat(), errs: make(chan error, 100)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	var open sync.WaitGroup
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Done()
		request, err := wire.ParseRequest(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		request.Listener = r.URL.Query().Get("listener")
		request.Farewell = func(cause error) (websocket.StatusCode, string) {
			if errors.Is(cause, errAccessLost) {
				return websocket.StatusPolicyViolation, "access lost"
			}
			return 0, ""
		}
		s.errs <- s.service.Serve(s.ctx, socket, request, s.chat)
	}))
	s.address = "ws" + strings.TrimPrefix(ts.URL, "http")
	t.Cleanup(func() {
		s.stop()
		open.Wait()
		ts.Close()
	})
	return s
}

// client is a client of a connection.
type client struct {
	t      testing.TB
	socket *websocket.Conn
}

func (s *served) dial(query string) *client {
	s.t.Helper()
	socket, _, err := websocket.Dial(s.t.Context(), s.address+"/?"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	socket.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = socket.CloseNow() })
	return &client{s.t, socket}
}

func (c *client) send(frame string) {
	c.t.Helper()
	if err := c.socket.Write(c.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) sendAudio(pcm []byte) {
	c.t.Helper()
	if err := c.socket.Write(c.t.Context(), websocket.MessageBinary, pcm); err != nil {
		c.t.Fatal(err)
	}
}

// received is what a client got: a frame, PCM, or a flush, which is one byte.
type received struct {
	frame struct {
		Type, State, Turn, Text, Code, Message, Action, Session, VAD, Key string
		Speech, Recognition, Final                                        bool
		Generation, Samples                                               int64
	}
	audio []byte
}

// read returns what comes next, or the close code.
func (c *client) read() (r received, code websocket.StatusCode) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	kind, b, err := c.socket.Read(ctx)
	if err != nil {
		return r, websocket.CloseStatus(err)
	}
	if kind == websocket.MessageBinary {
		return received{audio: b}, 0
	}
	if err := json.Unmarshal(b, &r.frame); err != nil {
		c.t.Error(err)
	}
	return r, 0
}

// until reads up to a frame with a type and a state, text or code, and returns the PCM before it.
func (c *client) until(kind, value string) (f received, pcm []byte) {
	c.t.Helper()
	for {
		r, code := c.read()
		if code != 0 {
			c.t.Fatalf("closed with %d instead of %s %s", code, kind, value)
		}
		if len(r.audio) > 1 {
			pcm = append(pcm, r.audio...)
		}
		f := r.frame
		if f.Type == kind && (value == "" || value == f.State || value == f.Code || value == f.Text || value == f.Turn) {
			return r, pcm
		}
	}
}

// untilFlush reads up to a flush, and returns the PCM before it.
func (c *client) untilFlush() (pcm []byte) {
	c.t.Helper()
	for {
		r, code := c.read()
		if code != 0 {
			c.t.Fatalf("closed with %d instead of a flush", code)
		}
		if len(r.audio) == 1 {
			return pcm
		}
		pcm = append(pcm, r.audio...)
	}
}

// closed reads up to the end of the connection, and returns its code and the last error frame's.
func (c *client) closed() (code websocket.StatusCode, reason string) {
	c.t.Helper()
	for {
		r, code := c.read()
		if code != 0 {
			return code, reason
		}
		if r.frame.Type == "error" {
			reason = r.frame.Code
		}
	}
}

// recognizer is a recogniser in memory: an utterance is final when it ends, with a text that names its bytes. The first byte of audio gives
// a partial text.
type recognizer struct {
	listenErr error

	mu   sync.Mutex
	open int
}

func (r *recognizer) Listen(context.Context, string) (voice.Listener, error) {
	if r.listenErr != nil {
		return nil, r.listenErr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
	return &listener{r: r, results: make(chan voice.Result, 1000)}, nil
}

type listener struct {
	r       *recognizer
	bytes   int
	results chan voice.Result
}

var errDeaf = errors.New("deaf")

func (l *listener) Write(pcm []byte) error {
	if l.bytes == 0 {
		l.results <- voice.Result{Text: "listening"}
	}
	l.bytes += len(pcm)
	if pcm[0] == 13 {
		l.results <- voice.Result{Err: errDeaf}
	}
	return nil
}

func (l *listener) EndUtterance() error {
	text := ""
	if l.bytes > 0 {
		text = fmt.Sprint(l.bytes, " bytes")
	}
	l.results <- voice.Result{Text: text, IsFinal: true}
	l.bytes = 0
	return nil
}

func (l *listener) Results() <-chan voice.Result { return l.results }

func (l *listener) Close() error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.open--
	return nil
}
