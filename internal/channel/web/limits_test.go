package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, &conversation{})
		v := s.dial("session=")
		key := "019a0000-0000-7000-8000-000000000001"
		for range 2 { // sent again, because the confirmation was lost
			v.say(`{"type":"message","content":" hi ","key":"` + key + `"}`)
			m := <-s.inbox.messages
			if m.ID != m.ChatID+"/"+key || m.Content != "hi" {
				t.Errorf("message %+v", m)
			}
			var f frame
			if v.next(&f); f.Type != typeUser || f.Key != key || f.Content != "hi" || f.Message != "message "+m.ID || f.ID == 0 {
				t.Errorf("frame %+v", f)
			}
		}
		for _, test := range [][2]string{
			{`{`, reasonInvalid},
			{`{"type":"message"}`, reasonInvalid},
			{`{"type":"message","content":"x","files":["unknown"]}`, reasonInvalid},
			{`{"type":"message","content":"x","key":"` + strings.Repeat("k", maxKey+1) + `"}`, reasonInvalid},
		} {
			v.say(test[0])
			var f frame
			if v.next(&f); f.Type != typeError || f.Reason != test[1] {
				t.Errorf("%s: frame %+v", test[0], f)
			}
		}
		v.say(`{"type":"unknown"}`)
		s.inbox.fail = errBroken
		v.say(`{"type":"message","content":"x","key":"k"}`)
		var f frame
		if v.next(&f); f.Type != typeError || f.Reason != reasonFailed || f.Key != "k" {
			t.Errorf("frame %+v", f)
		}
		s.inbox.fail = nil
		for range messageRate.Tokens {
			v.say(`{"type":"message","content":"x"}`)
			v.next(&f)
		}
		if f.Type != typeError || f.Reason != reasonRate || f.Retry <= 0 {
			t.Errorf("frame %+v", f)
		}
		time.Sleep(time.Minute / time.Duration(messageRate.Tokens))
		v.say(`{"type":"message","content":"x"}`)
		if v.next(&f); f.Type != typeUser {
			t.Errorf("frame %+v", f)
		}
		// The write fails if the connection is closed in its course, so its error doesn't matter.
		go func() {
			_ = v.Write(t.Context(), websocket.MessageText, []byte(`{"type":"message","content":"`+strings.Repeat("x", maxFrame)+`"}`))
		}()
		if _, _, err := v.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("error %v", err)
		}
	})
}

// The frame of a message precedes those of its answer, although the answer can begin before the inbox has returned.
func TestMessageBeforeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		log := &conversation{}
		answered := make(chan struct{})
		s.inbox.before = func(m channel.InboundMessage) {
			go func() {
				defer close(answered)
				y := s.tell(t.Context(), m.ChatID, "t1", log)
				y.end(event.Completed, "")
			}()
			for range 1000 { // the delivery waits for a mutex, so the time of the bubble stands still
				runtime.Gosched()
			}
		}
		v.say(`{"type":"message","content":"hi"}`)
		if got, want := types(v.until(typeDone)), "user typing stream stream_done"; got != want {
			t.Errorf("frames %s, want %s", got, want)
		}
		<-answered
	})
}

func TestTimeOfKey(t *testing.T) {
	now := time.UnixMilli(0x019a00000000).Add(time.Hour)
	if at := timeOf("019a0000-0000-7000-8000-000000000001", now); at.UnixMilli() != 0x019a00000000 {
		t.Errorf("time %v", at)
	}
	for _, key := range []string{"", "k", "019a0000-0000-4000-8000-000000000001", "01900000-0000-7000-8000-000000000001"} {
		if at := timeOf(key, now); at != now {
			t.Errorf("%q: time %v", key, at)
		}
	}
}

func TestConnectionLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{Public: true}, nil)
		first := s.dial("session=")
		for range maxPerChat - 1 {
			s.dial("session=" + first.session)
		}
		if _, err := s.tryDial("session=" + first.session); err == nil || !strings.HasPrefix(err.Error(), "429") {
			t.Errorf("error %v, want 429", err)
		}
		_ = first.CloseNow()
		synctest.Wait()
		s.dial("session=" + first.session)

		s.peer = &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 5}
		for range connectRate.Tokens {
			s.dial("")
		}
		s.peer = &net.TCPAddr{IP: net.ParseIP("2001:db8::2"), Port: 5} // the same network
		if _, err := s.tryDial(""); err == nil || !strings.HasPrefix(err.Error(), "429") {
			t.Errorf("error %v, want 429", err)
		}
		time.Sleep(time.Minute)
		s.dial("")
	})
	l := limits{byAddress: map[string]*visits{}}
	for i := range maxPerAddress + 1 {
		l.byAddress["a"] = &visits{sockets: i}
		if _, ok := l.connect("a"); ok != (i < maxPerAddress) {
			t.Errorf("%d connections of an address: %v", i, ok)
		}
	}
	l.sockets = maxSockets
	if _, ok := l.connect(""); ok {
		t.Error("too many connections")
	}
	l = limits{byAddress: map[string]*visits{}}
	for i := range maxAddresses + 10 {
		a := fmt.Sprint(i)
		if i == maxAddresses {
			for _, v := range l.byAddress {
				v.rate = (&visits{}).rate
			}
		}
		l.connect(a)
		l.disconnect(a)
	}
	if len(l.byAddress) > 10 {
		t.Errorf("%d addresses are remembered", len(l.byAddress))
	}
}

// A client that has lost its network is noticed, and one that answers pings stays.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		lost := s.dial("session=") // it doesn't read, so no pong is sent
		got := make(chan error, 1)
		go func() {
			_, _, err := v.Read(t.Context())
			got <- err
		}()
		time.Sleep(10 * time.Minute)
		s.limits.mu.Lock()
		if s.limits.sockets != 1 {
			t.Errorf("%d connections, want 1", s.limits.sockets)
		}
		s.limits.mu.Unlock()
		_ = lost.CloseNow()
		s.stop()
		if err := <-got; websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("error %v, want a close because of a shutdown", err)
		}
	})
}

// A shutdown ends although a client takes nothing.
func TestShutdownWithStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		y := s.tell(t.Context(), chatOf(v.session), "t1", &conversation{})
		y.write("word ")
		y.end(event.Completed, "")
		synctest.Wait()
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > closeLimit {
			t.Errorf("the shutdown took %v", took)
		}
		if _, err := s.tryDial(""); err == nil {
			t.Error("a stopped channel accepts connections")
		}
	})
}

func TestTokens(t *testing.T) {
	token := newToken()
	if chat := chatOf(token); !isChat(chat) || strings.Contains(token, chat) || chat != chatOf(token) || chat == chatOf(newToken()) {
		t.Errorf("token %q has the chat %q", token, chat)
	}
	for _, bad := range []string{"", "wv_", "web-1", token[1:], token + "A", token[:len(token)-1], strings.Replace(token, "wv_", "wv-", 1)} {
		if chatOf(bad) != "" {
			t.Errorf("%q has a chat", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, o := range []Options{
		{Listen: "18790"},
		{Listen: "nowhere"},
		{Origins: []string{"shop.example"}},
		{Origins: []string{"https://shop.example/path"}},
		{Origins: []string{"ftp://shop.example"}},
	} {
		if o.Check() == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	origins := []string{"*", "https://shop.example:8443", "http://localhost:3000/"}
	for _, o := range []Options{{}, {Listen: listenOff}, {Listen: ":0"}, {Origins: origins}} {
		if err := o.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Run listens, answers over real sockets, and gives the address back.
func TestListen(t *testing.T) {
	c := New(Options{Name: "web", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	inbox := &mailbox{messages: make(chan channel.InboundMessage, 1)}
	go func() { done <- c.Run(ctx, inbox) }()
	awaitRun(t, c, done)
	url := c.Link()
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"message","content":"hi"}`)); err != nil {
		t.Fatal(err)
	}
	if m := <-inbox.messages; m.Content != "hi" || m.SenderID != Visitor {
		t.Errorf("message %+v", m)
	}
	second := New(Options{Name: "web", Listen: strings.Trim(strings.TrimPrefix(url, "http:"), "/"), Log: slog.New(slog.DiscardHandler)})
	if err := second.Run(t.Context(), inbox); err == nil {
		t.Error("two channels listen on one address")
	}
	closed := make(chan error, 1)
	go func() {
		for {
			if _, _, err := conn.Read(t.Context()); err != nil {
				closed <- err
				return
			}
		}
	}()
	cancel()
	if err := <-closed; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("error %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c.Link() != "" {
		t.Error("a stopped channel has an address")
	}
	if _, _, err := websocket.Dial(t.Context(), url+"ws", nil); err == nil {
		t.Error("a stopped channel listens")
	}
	if err := c.Send(t.Context(), channel.OutboundMessage{}); !errors.Is(err, channel.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

// A shutdown doesn't wait for a client that sends its file slowly.
func TestShutdownWithSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		body, content := io.Pipe()
		defer content.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/files", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(sessionHeader, v.session)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			if response, err := s.client().Do(r); err == nil {
				_ = response.Body.Close()
			}
		}()
		synctest.Wait()
		_ = v.CloseNow()
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > 2*closeLimit {
			t.Errorf("the shutdown took %v", took)
		}
		_ = content.Close()
		<-sent
	})
}
