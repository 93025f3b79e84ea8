package tsclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent/demo"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/test/browser"
)

const page = `<!doctype html><title>A page</title><script type="module">
import { Client, turnText } from "/dist/index.js";
const id = new URLSearchParams(location.search).get("id");
window.client = new Client();
window.conversation = client.conversation(id);
conversation.subscribe(() => {
  const turn = conversation.state.turns[0];
  window.answer = turn?.state === "ended" ? turnText(conversation.state, turn.id) : "";
});
</script>`

// In a real browser: a message that is sent while the gateway is away outlives the page, and is brought by the next one, over
// a WebSocket.
func TestBrowserFull(t *testing.T) {
	needsNpm(t)
	p := browser.Open(t)
	if _, err := os.Stat("../../clients/ts/node_modules/typescript"); err != nil {
		run(t, "../../clients/ts", nil, "npm", "ci")
	}
	run(t, "../../clients/ts", nil, "npm", "run", "build")
	target := serveGateway(t)

	var away, sockets atomic.Int64
	back := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // so that the page's origin is the gateway's own
	}}
	mux := http.NewServeMux()
	mux.Handle("/dist/", http.FileServer(http.Dir("../../clients/ts")))
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if _, err := w.Write([]byte(page)); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if away.Load() > 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/api/ws" {
			sockets.Add(1)
		}
		back.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)

	c := &leat.Client{URL: target.String()}
	conv, err := c.Create(t.Context(), leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	away.Store(1)
	p.Go(srv.URL + "/page?id=" + conv.ID)
	p.Wait("the client", `window.conversation !== undefined`)
	p.Eval(`void conversation.send("12 * 7")`)
	p.Wait("a message that waits", `client.state === "reconnecting" && conversation.state.pending.length === 1 && localStorage.length === 1`)
	p.Reload()
	p.Wait("the message after a reload", `window.conversation?.state.pending[0]?.message.text === "12 * 7"`)
	away.Store(0)
	p.Wait("the answer", `window.answer?.includes("12 * 7 = 84")`)
	p.Wait("an empty outbox", `conversation.state.pending.length === 0 && localStorage.length === 0`)
	if sockets.Load() == 0 {
		t.Error("the page opened no WebSocket")
	}
	tr, err := c.Transcript(t.Context(), conv.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Messages) != 2 {
		t.Errorf("%d messages", len(tr.Messages))
	}
}

// serveGateway starts a gateway with a demo that does not dawdle.
func serveGateway(t *testing.T) *url.URL {
	t.Helper()
	j := memory.New()
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"demo": {Agent: demo.New(demo.Config{})}}, DefaultAgent: "demo", Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{})
	native.Register(srv, gw)
	native.RegisterInspection(srv, inspection.New(gw, inspection.Config{Journal: j}))
	eliza.Register(srv, gw, eliza.Options{})
	l := httptest.NewUnstartedServer(nil).Listener
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
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}
