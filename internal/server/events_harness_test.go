package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	keepdata "github.com/leat-dev/leat/internal/server/data"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/plugins"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/service/terminal"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

type answerer struct{}

func (answerer) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	if err := out.Text("re: " + in.Message.Text); err != nil {
		return err
	}
	return out.End(event.Completed, "", &event.Usage{Model: "model-1"})
}

// stage is a running server on which live events happen, put together as the program does it.
type stage struct {
	t     *testing.T
	url   string
	hub   *hub.Hub
	agent *status.Agent
}

// newStage starts one. limit is how long a command of its terminal may take.
func newStage(t *testing.T, limit time.Duration) *stage {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	j := memory.New()
	st := &stage{t: t, agent: status.NewAgent("eliza", "test")}
	log := signals.New(j, quiet)
	if err := log.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { log.Run(ctx) })
	updates, said := &eliza.Updates{}, eliza.NewProactive(quiet)
	dialects := dialect.NewRegistry(elizaactions.Dialect())
	turns := push.NewTurns(push.Config{Journal: j, Dialects: dialects})
	notified, err := webpush.Open(t.Context(), webpush.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	gw, err := gateway.New(gateway.Config{
		Journal: j, Dialects: dialects, Pusher: turns, Agents: gateway.Agents{"eliza": {Agent: answerer{}}}, DefaultAgent: "eliza", Titles: true,
		Hooks: gateway.Hooks{Watchers: []gateway.Watcher{status.NewTurns(log), st.agent, updates, said, notified}, Admit: st.agent.Admit},
	})
	if err != nil {
		t.Fatal(err)
	}
	st.hub = hub.New(gw)
	updates.Send = st.hub.Send
	notified.Show = func(n webpush.Notice) { st.hub.Send(elizaws.Notice(n)) }
	tasks.Go(func() { said.Run(ctx, gw, st.hub.Send) })
	st.agent.Begin()
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.agent.Ready()
	srv := server.New(server.Options{Token: token})
	native.Register(srv, gw)
	native.RegisterIngest(srv, gw, push.NewService(turns, gw))
	eliza.Register(srv, gw, eliza.Options{})
	elizaws.Register(srv, gw, elizaws.Options{Signals: log, Hub: st.hub, Agent: st.agent})
	dir := t.TempDir()
	for name, text := range map[string]string{"wave.glb": "glTF", eliza.EmotesFile: `[{"id":"wave","file":"wave.glb","duration":2.0}]`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	emotes, err := eliza.LoadEmotes(dir)
	if err != nil {
		t.Fatal(err)
	}
	eliza.RegisterEmotes(srv, eliza.EmoteOptions{Emotes: emotes, Send: st.hub.Send})
	shell, err := terminal.New(terminal.Config{MaxDuration: limit})
	if err != nil {
		shell = nil // this system can't run the terminal
	}
	eliza.RegisterTerminal(srv, eliza.TerminalOptions{Terminal: shell, Token: "terminal-token", Send: func(client string, frame []byte) {
		st.hub.Send(hub.Frame{Client: client, JSON: frame})
	}})
	store := openPlugins(t)
	plugins.Register(srv, gw, plugins.Options{Store: store, Send: st.hub.Send})
	keepdata.Register(srv, gw, keepdata.Options{
		Retention: data.NewRetention(gw, j, data.Ages{}, "eliza", quiet), Purger: data.NewPurger(gw, j, nil, nil, nil, quiet),
		Exporter: data.NewExporter(gw, j, nil), Importer: data.NewImporter(gw),
	})
	hs := httptest.NewServer(srv)
	st.url = hs.URL
	t.Cleanup(func() {
		if shell != nil {
			shell.Close()
		}
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		tasks.Wait()
		http.DefaultClient.CloseIdleConnections()
		hs.Close()
		store.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// call makes a request of the admin that has to succeed. Headers come as name, value.
func (st *stage) call(method, path, body string, headers ...string) string {
	st.t.Helper()
	r, err := http.NewRequestWithContext(st.t.Context(), method, st.url+path, strings.NewReader(body))
	if err != nil {
		st.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		st.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		st.t.Fatalf("%s %s %s: %d %s %v", method, path, body, res.StatusCode, b, err)
	}
	return strings.TrimSpace(string(b))
}

// conversation makes one.
func (st *stage) conversation(id string) {
	st.t.Helper()
	st.call("POST", "/api/conversations", `{"id":"`+id+`"}`)
}

// front is one socket of an Eliza client.
type front struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial opens a socket that waits for its token.
func (st *stage) dial(query string) *front {
	st.t.Helper()
	conn, _, err := websocket.Dial(st.t.Context(), st.url+"/ws"+query, nil)
	if err != nil {
		st.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	st.t.Cleanup(func() { _ = conn.CloseNow() })
	return &front{st.t, conn}
}

// join opens a socket and reads up to its first status, and what it was shown by then.
func (st *stage) join(query string) *front {
	st.t.Helper()
	f := st.dial(query)
	f.say(`{"type":"auth","token":"` + token + `"}`)
	f.hears("auth-ok", `{"type":"auth-ok"}`)
	f.frame("status")
	f.say(`{"type":"ping"}`)
	f.frame("pong") // whatever happens from here on is shown
	return f
}

func (f *front) say(s string) {
	f.t.Helper()
	if err := f.conn.Write(f.t.Context(), websocket.MessageText, []byte(s)); err != nil {
		f.t.Fatal(err)
	}
}

// changing is what differs from run to run.
var changing = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
	{regexp.MustCompile(`"(ts|timestamp|startedAt|uptime|durationMs)":\d+`), `"$1":0`},
	{regexp.MustCompile(`run-\d{13}-[a-z0-9]{12}`), "RUN"},
}

// frame returns the next frame of a type, with what differs from run to run under names; others are passed over.
func (f *front) frame(kind string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for {
		_, b, err := f.conn.Read(ctx)
		if err != nil {
			f.t.Fatalf("no %s: %v", kind, err)
		}
		var head struct{ Type string }
		if err := json.Unmarshal(b, &head); err != nil {
			f.t.Fatalf("%s: %v", b, err)
		}
		if head.Type != kind {
			continue
		}
		s := string(b)
		for _, c := range changing {
			s = c.what.ReplaceAllString(s, c.name)
		}
		return s
	}
}

// hears checks the next frames of a type, to the byte.
func (f *front) hears(kind string, want ...string) {
	f.t.Helper()
	for _, w := range want {
		if got := f.frame(kind); got != w {
			f.t.Errorf("\n got %s\nwant %s", got, w)
		}
	}
}
