package deploy

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const token = "sesame-7f3a"

// waitLimit is how long anything may take that comes at once if nothing is wrong.
const waitLimit = time.Minute

// mouths is an agent that says what the test tells it to, word by word: the message names whose words.
type mouths struct {
	mu  sync.Mutex
	all map[string]chan string
}

func (m *mouths) of(name string) chan string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[name] == nil {
		m.all[name] = make(chan string, 64)
	}
	return m.all[name]
}

func (m *mouths) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	words := m.of(in.Message.Text)
	for {
		select {
		case word, ok := <-words:
			if !ok {
				return nil
			}
			if err := out.Text(word); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// harness is a gateway with its surfaces, configured for a proxy.
type harness struct {
	t      *testing.T
	gw     *gateway.Gateway
	mouths *mouths
	addr   string // as nginx writes it
}

func newHouse(t *testing.T, network string, opt server.Options) *harness {
	t.Helper()
	h := &harness{t: t, mouths: &mouths{all: map[string]chan string{}}}
	j, dialects := memory.New(), dialect.NewRegistry(elizaactions.Dialect())
	turns := push.NewTurns(push.Config{Journal: j, Dialects: dialects})
	gw, err := gateway.New(gateway.Config{
		Journal: j, Dialects: dialects, Pusher: turns, Settings: gateway.Settings{Drain: time.Millisecond},
		Agents: gateway.Agents{"a": {Agent: h.mouths}}, DefaultAgent: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	h.gw = gw
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	opt.Token = token
	opt.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	srv := server.New(opt)
	native.Register(srv, gw)
	native.RegisterIngest(srv, gw, push.NewService(turns, gw))
	eliza.Register(srv, gw, eliza.Options{})
	ui.Register(srv, nil)
	ops.Register(srv, gw, prometheus.NewRegistry(), nil)
	srv.Handle(server.Route{Method: "GET", Pattern: "/seen", Access: server.Public, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		server.WriteJSON(w, http.StatusOK, map[string]string{"addr": server.ClientAddr(r).String(), "url": srv.URL(r, "/seen")})
		return nil
	}})
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(t.TempDir(), "leat.sock")
	}
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	if h.addr = l.Addr().String(); network == "unix" {
		h.addr = "unix:" + h.addr
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		err := gw.Shutdown(context.Background())
		cancel()
		if err := errors.Join(err, <-served); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harness) create() string {
	h.t.Helper()
	s, _, err := h.gw.Create(h.t.Context(), gateway.Principal{Admin: true}, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func (h *harness) send(conversation, text string) {
	h.t.Helper()
	_, err := h.gw.Do(h.t.Context(), gateway.Principal{Admin: true}, conversation, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.t.Fatal(err)
	}
}

// site is one way to the gateway.
type site struct {
	t    *testing.T
	base string
	c    *http.Client

	proxied, isHTTP1 bool
}

func (s site) do(method, path string, body io.Reader) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if s.proxied {
		r.Header.Set("X-Forwarded-For", "9.9.9.9") // a header from the client must be ignored
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("Forwarded", "for=9.9.9.9")
	}
	res, err := s.c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// lines reads lines until one holds the text. It fails the test where that takes too long: something holds them back.
func lines(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	found := make(chan error, 1)
	go func() {
		for {
			line, err := r.ReadString('\n')
			if strings.Contains(line, text) || err != nil {
				found <- err
				return
			}
		}
	}()
	select {
	case err := <-found:
		if err != nil {
			t.Fatalf("before %q came: %v", text, err)
		}
	case <-time.After(waitLimit):
		t.Fatalf("%q is held back", text)
	}
}

// ways are the fronts of the proxy. The path is that below which the gateway lies.
func (p *proxy) ways(path string) map[string]site {
	return map[string]site{
		"HTTP/1.1": {p.t, "https://chat.example.com" + path, p.client("127.0.0.2", false), true, true},
		"HTTP/2":   {p.t, "https://chat.example.com" + path, p.client("127.0.0.2", true), true, false},
	}
}

func publicURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Streams go through nginx word by word, in both directions, with the buffering that nginx has by default.
func TestNginx(t *testing.T) {
	for _, c := range []struct {
		name, network, path, base string
		changes                   []string
	}{
		{name: "at the root"},
		{name: "over a Unix socket", network: "unix"},
		{name: "below a path", path: "/leat", base: "/leat", changes: []string{"location / {", "location /leat/ {"}},
		{name: "with the path taken off", path: "/leat", changes: []string{"location / {", "location /leat/ {", "proxy_pass http://leat;", "proxy_pass http://leat/;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lookNginx(t)
			h := newHouse(t, cmp.Or(c.network, "tcp"), server.Options{PublicURL: publicURL(t, "https://chat.example.com"+c.path), BasePath: c.base})
			p := startNginx(t, h.addr, c.changes...)
			for front, way := range p.ways(c.path) {
				t.Run(front, func(t *testing.T) { wantFront(t, h, way, true) })
			}
			res := site{t, "http://chat.example.com", p.client("127.0.0.2", false), true, true}.do("GET", c.path+"/seen?x=1", nil)
			if got := res.Header.Get("Location"); res.StatusCode != 308 || got != "https://chat.example.com"+c.path+"/seen?x=1" {
				t.Errorf("without TLS: %s, %s", res.Status, got)
			}
		})
	}
}

// wantFront checks requests, streams and pushes through a proxy. WebSockets are checked by HTTP/1.1, because browsers open a connection for each.
func wantFront(t *testing.T, h *harness, way site, pushes bool) {
	way.t = t
	t.Run("seen", func(t *testing.T) { wantSeen(t, way) })
	t.Run("events", func(t *testing.T) { wantEvents(t, h, way) })
	if pushes {
		t.Run("ingest", func(t *testing.T) { wantIngest(t, h, way) })
	}
	if way.isHTTP1 {
		t.Run("socket", func(t *testing.T) { wantSocket(t, h, way) })
	}
}

// The gateway knows who asks, and where people are.
func wantSeen(t *testing.T, way site) {
	res := way.do("GET", "/seen", nil)
	var got struct{ Addr, URL string }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Addr != "127.0.0.2" || got.URL != way.base+"/seen" {
		t.Errorf("the client is %s, the site %s", got.Addr, got.URL)
	}
	if h := res.Header.Get("Strict-Transport-Security"); h == "" {
		t.Error("no HSTS")
	}
	if res := way.do("GET", "/", nil); res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: %s", res.Status)
	}
	res = way.do("POST", "/api/auth/session", strings.NewReader(`{"token":"`+token+`"}`))
	if c := res.Cookies(); len(c) != 1 || !c[0].Secure || !strings.HasSuffix(way.base+"/", c[0].Path) {
		t.Errorf("the cookie: %s, %v", res.Status, c)
	}
}

// Each word must arrive before the next one is sent.
func wantEvents(t *testing.T, h *harness, way site) {
	id := h.create()
	res := way.do("GET", "/api/conversations/"+id+"/events", nil)
	in := bufio.NewReader(res.Body)
	lines(t, in, `"hello"`)
	words := h.mouths.of(id)
	h.send(id, id)
	for i := range 20 {
		word := fmt.Sprintf("word-%d.", i)
		words <- word
		lines(t, in, word)
	}
	close(words)
	lines(t, in, "turn.end")
}

// A pushed stream is read while it is being sent, and acknowledged meanwhile.
func wantIngest(t *testing.T, h *harness, way site) {
	id := h.create()
	f, err := h.gw.Feed(t.Context(), gateway.Principal{Admin: true}, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	body, out := io.Pipe()
	answered := make(chan *http.Response, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, way.base+"/api/conversations/"+id+"/turns?dialect=eliza-actions", body)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := way.c.Do(r)
		if err != nil {
			res = nil
		}
		answered <- res
	}()
	for i := range 20 {
		word := fmt.Sprintf("word-%d.", i)
		if _, err := fmt.Fprintf(out, `{"type":"chunk","text":%q}`+"\n", word); err != nil {
			t.Fatal(err)
		}
		until(t, f.Feed, word)
	}
	if _, err := io.WriteString(out, `{"type":"done"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	res := <-answered
	if res == nil {
		t.Fatal("no answer")
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusCreated || err != nil || !strings.Contains(string(b), `"outcome":"completed"`) {
		t.Errorf("%s, %v: %s", res.Status, err, b)
	}
	if at := res.Header.Get("Location"); !strings.HasPrefix(at, way.base+"/api/turns/") {
		t.Errorf("Location: %s", at)
	}
}

func wantSocket(t *testing.T, h *harness, way site) {
	id := h.create()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(way.base, "https", "wss", 1)+"/api/ws", &websocket.DialOptions{
		HTTPClient: way.c, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}, "Origin": {"https://chat.example.com"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"subscribe","conversation":"`+id+`"}`)); err != nil {
		t.Fatal(err)
	}
	read := func(text string) {
		t.Helper()
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				t.Fatalf("before %q came: %v", text, err)
			}
			if strings.Contains(string(b), text) {
				return
			}
		}
	}
	read("snapshot")
	words := h.mouths.of(id)
	h.send(id, id)
	for i := range 20 {
		word := fmt.Sprintf("word-%d.", i)
		words <- word
		read(word)
	}
	close(words)
	read("turn.end")
}

const tries = 60

// TestNginxTimeToFirstToken measures what nginx adds to the time from a message to the first token of its answer.
func TestNginxTimeToFirstToken(t *testing.T) {
	lookNginx(t)
	h := newHouse(t, "tcp", server.Options{PublicURL: publicURL(t, "https://chat.example.com")})
	p := startNginx(t, h.addr)
	ways := p.ways("")
	ways["direct"] = site{t, "http://" + h.addr, &http.Client{Transport: &http.Transport{}}, false, false}
	defer ways["direct"].c.CloseIdleConnections()
	took := map[string][]time.Duration{}
	for i := range tries {
		for name, way := range ways {
			id := h.create()
			words := h.mouths.of(id)
			words <- "first." // and nothing more until it has been read
			begin := time.Now()
			res := way.do("POST", "/api/conversations/"+id+"/messages/stream", strings.NewReader(`{"text":"`+id+`"}`))
			in := bufio.NewReader(res.Body)
			lines(t, in, "first.")
			if i > 0 { // the first opens the connection
				took[name] = append(took[name], time.Since(begin))
			}
			close(words)
			lines(t, in, `"done"`)
			_, _ = io.Copy(io.Discard, in) // so that the connection is used again
			_ = res.Body.Close()
		}
	}
	part := func(name string, of int) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/of]
	}
	for _, name := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Logf("time to first token, median of %d: direct %v, through nginx by %s and TLS %v: %v added",
			tries-1, part("direct", 2), name, part(name, 2), part(name, 2)-part("direct", 2))
		// Other load on the machine mostly delays slow requests, and it does so without nginx too.
		direct := part("direct", 4)
		if added := part(name, 4) - direct; added > max(20*time.Millisecond, 5*direct) {
			t.Errorf("of the quicker half nginx adds %v to %v", added, direct)
		}
	}
}

// until waits until what a reader of the gateway itself sees holds the text.
func until(t *testing.T, f *feed.Feed, text string) {
	t.Helper()
	late := time.After(waitLimit)
	for {
		changed, found := f.Notify(), false
		f.View(func(tr *transcript.Transcript) {
			for _, m := range tr.Messages {
				found = found || strings.Contains(m.Visible(), text)
			}
		})
		if found {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%q is held back", text)
		}
	}
}
