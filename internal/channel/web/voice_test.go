package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/voice/voicetest"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// hearer stores marks.
type hearer struct {
	mu    sync.Mutex
	marks []gateway.HeardMark
}

func (h *hearer) MarkChatHeard(_ context.Context, channel, chat string, m gateway.HeardMark) error {
	if channel != "web" || !isChat(chat) {
		return fmt.Errorf("chat %s of %s", chat, channel)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = append(h.marks, m)
	return nil
}

func (h *hearer) IsChatWatched(string, string) bool { return false }

// speaking opens a channel with voice.
func speaking(t *testing.T, o Options, source conversations) (*site, *hearer) {
	t.Helper()
	s, h := open(t, o, source), &hearer{}
	s.SpeakWith(wire.New(wire.Options{Engine: &voicetest.Engine{}, Log: slog.New(slog.DiscardHandler)}), h)
	return s, h
}

// listener is a voice connection of a visitor.
type listener struct {
	*websocket.Conn
	t             *testing.T
	session, chat string
}

type voiceFrame struct{ Type, State, Turn, Text, Code, Message, Session string }

func (s *site) listen(query string) *listener {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), "ws://localhost/voice?"+query, &websocket.DialOptions{HTTPClient: s.client()})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	l := &listener{Conn: conn, t: s.t}
	f, _ := l.until("ready")
	l.session, l.chat = f.Session, chatOf(f.Session)
	return l
}

// until reads up to a frame whose type, text or code is want; "flush" is a flush. It returns the length of the PCM before it.
func (l *listener) until(want string) (f voiceFrame, pcm int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		kind, b, err := l.Read(ctx)
		f = voiceFrame{}
		switch {
		case err != nil:
			l.t.Fatalf("no %s: %v", want, err)
		case kind == websocket.MessageBinary && len(b) == 1:
			f.Type = "flush"
		case kind == websocket.MessageBinary:
			pcm += len(b)
			continue
		default:
			if err := json.Unmarshal(b, &f); err != nil {
				l.t.Error(err)
			}
		}
		if f.Type == want || f.Text == want || f.Code == want {
			return f, pcm
		}
	}
}

func (l *listener) say(frame string) {
	l.t.Helper()
	if err := l.Write(l.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		l.t.Fatal(err)
	}
}

func bytesOf(text string) int { return 2 * len([]rune(text)) * voicetest.SamplesPerRune }

// A visitor talks: the message reaches the inbox of the same chat as on /ws, what is shown is spoken, and an interruption stops the turn.
func TestVoice(t *testing.T) {
	s, h := speaking(t, Options{Public: true}, nil)
	l := s.listen("language=en")
	l.say(`{"type":"text","text":"Hello","key":"k"}`)
	if m := <-s.inbox.messages; m.Content != "Hello" || m.ChatID != l.chat || m.ID != l.chat+"/k" || m.SenderID != Visitor || m.Hints.Command != "" {
		t.Errorf("%+v", m)
	}
	r := s.rooms.enter(l.chat)
	defer s.rooms.leave(r)
	r.begin("turn", "agent")
	r.grow("This is the first sentence of the answer. ")
	r.setTool(frame{Call: "c", Name: "search", State: "running"})
	l.until("This is the first sentence of the answer.")
	r.setText("This is the first sentence of the answer. And this is the other one.")
	r.end(frame{Type: typeDone})
	if _, pcm := l.until("stream_done"); pcm != bytesOf("This is the first sentence of the answer.And this is the other one.") {
		t.Errorf("%d bytes", pcm)
	}

	r.begin("next", "agent")
	r.grow("Another answer is here. ")
	l.until("Another answer is here.")
	l.say(`{"type":"interrupt","played":0}`)
	l.until("flush")
	if m := <-s.inbox.messages; m.Content != "/stop" || m.Hints.Command != "stop" || !m.Hints.ForceSync || m.ChatID != l.chat {
		t.Errorf("%+v", m)
	}
	h.mu.Lock()
	// Of the first answer the client reported nothing, so it was heard up to its end as far as the gateway knows, or is still in the queue.
	if len(h.marks) != 1 {
		t.Errorf("marks: %+v", h.marks)
	}
	h.mu.Unlock()

	// Messages outside of turns are spoken, and a failed turn is reported.
	r.sendMessage("You can write now.", "key")
	l.until("You can write now.")
	r.begin("failed", "agent")
	r.end(frame{Type: typeMessage, Content: "It failed."})
	if f, _ := l.until("turn_failed"); f.Message != "It failed." {
		t.Errorf("%+v", f)
	}
}

// A message beyond the rate is refused.
func TestVoiceRate(t *testing.T) {
	s, _ := speaking(t, Options{}, nil)
	l := s.listen("")
	for i := range messageRate.Tokens + 1 {
		l.say(fmt.Sprintf(`{"type":"text","text":"%d"}`, i))
	}
	if f, _ := l.until("not_sent"); f.Message != "Too many messages." {
		t.Errorf("%+v", f)
	}
}

// A client that resumes hears the rest of an answer, whether it is being delivered or has ended.
func TestVoiceResume(t *testing.T) {
	s, _ := speaking(t, Options{}, nil)
	first := s.listen("")
	r := s.rooms.enter(first.chat)
	defer s.rooms.leave(r)
	r.begin("turn", "agent")
	r.grow("This is the first sentence of the answer. And this is the other one.")
	l := s.listen("session=" + first.session + "&after=turn:42:1200")
	if l.chat != first.chat {
		t.Error("another chat")
	}
	l.until("state")
	r.end(frame{Type: typeDone})
	if _, pcm := l.until("stream_done"); pcm != bytesOf("And this is the other one.")-2400 {
		t.Errorf("%d bytes", pcm)
	}
	if _, _, err := first.Read(t.Context()); err == nil {
		for err == nil {
			_, _, err = first.Read(t.Context())
		}
		if websocket.CloseStatus(err) != 4009 {
			t.Errorf("the older connection: %v", err)
		}
	}
}

// The handshake is refused without voice, with an invalid query and while the channel doesn't run; and a connection ends with the channel.
func TestVoiceRefused(t *testing.T) {
	status := func(s *site, query string) int {
		_, res, err := websocket.Dial(t.Context(), "ws://localhost/voice?"+query, &websocket.DialOptions{HTTPClient: s.client()})
		if err == nil || res == nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	if got := status(open(t, Options{}, nil), ""); got != http.StatusNotFound {
		t.Errorf("without voice: %d", got)
	}
	s, _ := speaking(t, Options{}, nil)
	if got := status(s, "after=x"); got != http.StatusBadRequest {
		t.Errorf("invalid query: %d", got)
	}
	l := s.listen("")
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	var err error
	for err == nil {
		_, _, err = l.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("closed with %v", err)
	}
	<-stopped
}
