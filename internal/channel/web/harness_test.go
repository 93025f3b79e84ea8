package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mailbox is an inbox that the test reads.
type mailbox struct {
	messages chan channel.InboundMessage
	before   func(channel.InboundMessage) // is called first, unless it is nil
	fail     error
}

func (b *mailbox) Receive(_ context.Context, m channel.InboundMessage) error {
	if b.before != nil {
		b.before(m)
	}
	if b.fail == nil {
		b.messages <- m
	}
	return b.fail
}

// pipes is a listener whose connections are in memory, so that they can be used in a synctest bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// from is a connection with the address of a peer.
type from struct {
	net.Conn
	address net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.address }

// site is a running channel, and a server that it is mounted in.
type site struct {
	*Channel
	t     *testing.T
	inbox *mailbox
	pipes *pipes
	peer  net.Addr // of the next connections
	stop  func()
}

// open runs a channel over connections in memory.
func open(t *testing.T, o Options, source conversations) *site {
	t.Helper()
	o.Name, o.Listen, o.Log = "web", listenOff, slog.New(slog.DiscardHandler)
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	s := &site{
		Channel: New(o), t: t, inbox: &mailbox{messages: make(chan channel.InboundMessage, 100)},
		pipes: &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}, peer: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5},
	}
	if source != nil {
		s.ReadFrom(source)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: s.Channel}
	var tasks sync.WaitGroup
	ended := make(chan error, 1)
	tasks.Go(func() { ended <- s.Run(ctx, s.inbox) })
	tasks.Go(func() { _ = server.Serve(s.pipes) })
	awaitRun(t, s.Channel, ended)
	s.stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Shutdown(context.Background())
		tasks.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// awaitRun waits until a channel answers requests. It fails if Run ends before, or takes more than ten seconds.
func awaitRun(t *testing.T, c *Channel, ended <-chan error) {
	t.Helper()
	for range 10_000 {
		if run, leave := c.join(); run != nil {
			leave()
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("Run has ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatal("Run doesn't begin")
}

func (s *site) client() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		select {
		case s.pipes.accepted <- from{b, s.peer}:
			return a, nil
		case <-s.pipes.closed:
			return nil, net.ErrClosed
		}
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute, DialContext: dial}}
}

// visitor is a connection of a visitor.
type visitor struct {
	*websocket.Conn
	t       *testing.T
	session string
}

// dial connects with a query, and checks that the first frame has the session.
func (s *site) dial(query string, header ...string) *visitor {
	s.t.Helper()
	v, err := s.tryDial(query, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	var f frame
	if v.next(&f); f.Type != typeSession {
		s.t.Fatalf("the first frame is %+v", f)
	}
	v.session = f.Session
	return v
}

func (s *site) tryDial(query string, header ...string) (*visitor, error) {
	h := http.Header{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	options := &websocket.DialOptions{HTTPClient: s.client(), HTTPHeader: h, Host: h.Get("Host"), Subprotocols: h.Values("Sec-WebSocket-Protocol")}
	conn, response, err := websocket.Dial(s.t.Context(), "ws://localhost/ws?"+query, options)
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("%d: %w", response.StatusCode, err)
		}
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &visitor{Conn: conn, t: s.t}, nil
}

// raw reads one frame.
func (v *visitor) raw() string {
	v.t.Helper()
	_, b, err := v.Read(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b)
}

func (v *visitor) next(f *frame) {
	v.t.Helper()
	*f = frame{}
	if err := json.Unmarshal([]byte(v.raw()), f); err != nil {
		v.t.Fatal(err)
	}
}

// until reads frames up to the first one of a type.
func (v *visitor) until(kind string) (list []frame) {
	v.t.Helper()
	for {
		var f frame
		v.next(&f)
		if list = append(list, f); f.Type == kind {
			return list
		}
	}
}

func (v *visitor) say(f string) {
	v.t.Helper()
	if err := v.Write(v.t.Context(), websocket.MessageText, []byte(f)); err != nil {
		v.t.Fatal(err)
	}
}

// story makes the events of a turn, and folds them into the log of a conversation.
type story struct {
	t     *testing.T
	turn  string
	log   *conversation
	ch    chan channel.StreamEvent
	parts int
	text  int64
	done  chan error
}

// conversation is a log in memory, of one chat. Its zero value is empty.
type conversation struct {
	mu  sync.Mutex
	log transcript.Transcript
	seq int64
}

var _ conversations = (*conversation)(nil)

func (c *conversation) ViewChat(_ context.Context, _, _ string, view func(*transcript.Transcript)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	view(&c.log)
	return nil
}

func (c *conversation) OpenChatMedia(_ context.Context, _, chat string, m event.Media) (io.ReadCloser, error) {
	if strings.Contains(m.URL, "missing") {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader("stored " + m.URL)), nil
}

func (c *conversation) MessageID(m channel.InboundMessage) string { return "message " + m.ID }

// apply adds an event.
func (c *conversation) apply(t *testing.T, e *event.Event) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	e.Seq = c.seq
	if err := c.log.Apply(e); err != nil {
		t.Fatal(err)
	}
}

// addMessage adds a message that the visitor wrote in the chat.
func (c *conversation) addMessage(t *testing.T, id, text string) {
	t.Helper()
	parts := []event.Part{{Kind: event.KindText, Text: text}}
	c.apply(t, &event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Source: "web", Parts: parts}})
}

// tell begins a turn and its delivery to a chat.
func (s *site) tell(ctx context.Context, chat, turn string, log *conversation) *story {
	y := &story{t: s.t, turn: turn, log: log, ch: make(chan channel.StreamEvent), done: make(chan error, 1)}
	metadata := channel.StreamMetadata{Conversation: "c", Turn: turn, Agent: "a"}
	metadata.OpenMedia = func(ctx context.Context, m event.Media) (io.ReadCloser, error) {
		return log.OpenChatMedia(ctx, "", "", m)
	}
	go func() { y.done <- s.SendStream(ctx, chat, metadata, y.ch) }()
	y.send(event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "a"}},
		event.Event{Type: event.MessageStart, Message: y.message(), Body: &event.Body{Role: event.Assistant}})
	return y
}

// message returns the id of the message that the turn writes.
func (y *story) message() string { return y.turn + "m" }

// call begins a tool call, whose input comes in pieces.
func (y *story) call(part, name string, input ...string) {
	body := &event.Body{Kind: event.KindTool, Name: name, State: event.PartRunning}
	events := []event.Event{{Type: event.PartStart, Message: y.message(), Part: part, Body: body}}
	var offset int64
	for _, text := range input {
		events = append(events, event.Event{Type: event.PartAppend, Message: y.message(), Part: part, Field: event.Input, Text: text, Offset: offset})
		offset += int64(len(text))
	}
	y.parts++
	y.send(events...)
}

// ask asks the visitor whether a tool may run, and answered commits the answer.
func (y *story) ask(tool string) {
	request := &event.Request{ID: "r", Kind: event.RequestApproval, Tool: tool, Prompt: "Run it?"}
	y.send(event.Event{Type: event.TurnWait, Body: &event.Body{Request: request}})
}

func (y *story) answered() {
	y.send(event.Event{Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: "r", Decision: event.Approve}}})
}

// show adds a file to the answer.
func (y *story) show(part string, m event.Media) {
	y.parts++
	y.send(event.Event{Type: event.PartStart, Message: y.message(), Part: part, Body: &event.Body{Kind: event.KindMedia, Media: &m}})
}

// send commits events and passes them on as one step.
func (y *story) send(events ...event.Event) {
	y.t.Helper()
	for i := range events {
		events[i].Turn = y.turn
		y.log.apply(y.t, &events[i])
	}
	y.pass(events...)
}

func (y *story) pass(events ...event.Event) {
	y.t.Helper()
	select {
	case y.ch <- channel.StreamEvent{Events: events}:
	case err := <-y.done:
		y.t.Fatalf("the delivery has ended: %v", err)
	}
}

func (y *story) open(kind event.PartKind) {
	y.parts++
	y.text = 0
	body := &event.Body{Kind: kind, Join: event.JoinBlank}
	y.send(event.Event{Type: event.PartStart, Message: y.message(), Part: fmt.Sprint("p", y.parts), Body: body})
}

// write extends the open text by pieces, in one step.
func (y *story) write(pieces ...string) {
	if y.parts == 0 {
		y.open(event.KindText)
	}
	var events []event.Event
	for _, text := range pieces {
		events = append(events, event.Event{Type: event.PartAppend, Message: y.message(), Part: fmt.Sprint("p", y.parts), Offset: y.text, Text: text})
		y.text += int64(len(text))
	}
	y.send(events...)
}

func (y *story) replace(text string) {
	y.text = int64(len(text))
	y.send(event.Event{Type: event.PartReplace, Message: y.message(), Part: fmt.Sprint("p", y.parts), Text: text})
}

// end ends the turn and waits for the end of its delivery.
func (y *story) end(outcome event.Outcome, failure string) {
	y.t.Helper()
	body := &event.Body{Outcome: outcome}
	if failure != "" {
		body.Error = &event.Error{Message: failure}
	}
	y.send(event.Event{Type: event.TurnEnd, Body: body})
	close(y.ch)
	if err := <-y.done; err != nil {
		y.t.Error(err)
	}
}

// types returns the types of frames.
func types(list []frame) string {
	var names []string
	for _, f := range list {
		names = append(names, f.Type)
	}
	return strings.Join(names, " ")
}

// errBroken is an error of the inbox.
var errBroken = errors.New("broken")
