package web

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/internal/channel"
)

func TestOrigins(t *testing.T) {
	for _, test := range []struct {
		origins, origin, host string
		ok                    bool
	}{
		{"", "", "localhost", true},
		{"", "http://localhost", "localhost", true},
		{"", "http://localhost:18790", "localhost:18790", true},
		{"", "http://127.0.0.1:18790", "127.0.0.1:18790", true},
		{"", "http://[::1]:18790", "[::1]:18790", true},
		{"", "http://192.0.2.7:18790", "192.0.2.7:18790", true},
		{"", "http://localhost:3000", "localhost:18790", false},
		{"", "https://evil.example", "localhost:18790", false},
		{"", "http://evil.example:18790", "evil.example:18790", false}, // DNS rebinding
		{"", "null", "localhost", false},
		{"", "file://", "localhost", false},
		{"https://shop.example", "https://shop.example", "chat.example", true},
		{"https://shop.example/", "https://SHOP.example", "chat.example", true},
		{"https://shop.example", "http://shop.example", "chat.example", false},
		{"https://shop.example", "https://shop.example.evil.example", "chat.example", false},
		{"*", "https://evil.example", "chat.example", true},
	} {
		c := New(Options{Name: "web", Origins: strings.Fields(test.origins), Log: slog.New(slog.DiscardHandler)})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+test.host+"/ws", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if ok := c.isOriginAllowed(r); ok != test.ok {
			t.Errorf("origin %q at %q with %q: %v", test.origin, test.host, test.origins, ok)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{Origins: []string{"https://shop.example"}}, nil)
		if _, err := s.tryDial("", "Origin: https://evil.example"); err == nil || !strings.HasPrefix(err.Error(), "403") {
			t.Errorf("error %v, want 403", err)
		}
		s.dial("", "Origin: https://shop.example")
	})
}

// Without the option public, only visitors on the machine of the gateway need no code.
func TestWhoNeedsNoCode(t *testing.T) {
	near, far := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}
	for _, test := range []struct {
		public bool
		peer   net.Addr
		header []string
		ok     bool
	}{
		{false, near, nil, true},
		{false, near, []string{"X-Forwarded-For: 192.0.2.1"}, false},
		{false, near, []string{"Host: chat.example"}, false},
		{false, far, nil, false},
		{true, far, nil, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, Options{Public: test.public}, nil)
			s.peer = test.peer
			v := s.dial("", test.header...)
			v.say(`{"type":"message","content":"/agent other"}`)
			m := <-s.inbox.messages
			want := m.ChatID
			if test.ok {
				want = Visitor
			}
			if m.SenderID != want {
				t.Errorf("%+v: sender %q", test, m.SenderID)
			}
			if isLocal := test.ok && !test.public; (m.Hints.Command == "agent") != isLocal {
				t.Errorf("%+v: command %q", test, m.Hints.Command)
			}
		})
	}
}

// A code for /link admits its user to another channel, so visitors who were not admitted get none. A code that a visitor gives
// links that visitor only, and not all of those who need no code.
func TestLinkCodes(t *testing.T) {
	near, far := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}
	for _, test := range []struct {
		public    bool
		peer      net.Addr
		text      string
		isCommand bool
		isShared  bool
	}{
		{false, near, "/link", true, true},
		{true, near, "/link", true, true},
		{true, far, "/link", false, true},
		{false, far, "/link", true, false}, // the pipeline asks for the admission of this visitor
		{true, far, "/link ABCDEFGH", true, false},
		{false, near, "/link ABCDEFGH", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, Options{Public: test.public}, nil)
			s.peer = test.peer
			v := s.dial("")
			v.say(`{"type":"message","content":"` + test.text + `"}`)
			m := <-s.inbox.messages
			if (m.Hints.Command == "link") != test.isCommand || (m.SenderID == Visitor) != test.isShared || !test.isShared && m.SenderID != m.ChatID {
				t.Errorf("%+v: %+v", test, m)
			}
		})
	}
}

// A client can name its session in a header instead of the address, which proxies log.
func TestSessionInSubprotocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		first := s.dial("", "Sec-WebSocket-Protocol: "+subprotocol)
		if first.Subprotocol() != subprotocol || chatOf(first.session) == "" {
			t.Fatalf("subprotocol %q, session %q", first.Subprotocol(), first.session)
		}
		second := s.dial("after=0", "Sec-WebSocket-Protocol: "+subprotocol, "Sec-WebSocket-Protocol: "+first.session)
		if second.session != first.session || second.Subprotocol() != subprotocol {
			t.Errorf("subprotocol %q, session %q instead of %q", second.Subprotocol(), second.session, first.session)
		}
		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chatOf(first.session), Content: "hi"}); err != nil {
			t.Fatal(err)
		}
		if list := first.until(typeMessage); list[len(list)-1].ID == 0 {
			t.Error("the frames of a client that knows all of them have no ids")
		}
	})
}
