package openclaw

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const (
	secret = "a-token"
	// patience is how long a test waits for what must happen.
	patience = time.Minute
	mainKey  = "agent:eliza:main"
	// socketBuffer is the size in bytes of the kernel's buffers of both sides, which it doubles.
	socketBuffer = 64 << 10
)

var admin = gateway.Principal{Admin: true}

// users verifies the tokens of users: "user-NAME", and two that are refused for other reasons than being wrong.
type users struct{}

func (users) Verify(_ context.Context, token string) (server.Identity, error) {
	if name, ok := strings.CutPrefix(token, "user-"); ok {
		return server.Identity{Principal: gateway.Principal{Subject: name}}, nil
	}
	switch token {
	case "expired":
		return server.Identity{}, server.ErrExpired
	case "unchecked":
		return server.Identity{}, server.ErrNotNow
	}
	return server.Identity{}, errors.New("not a user's token")
}

// harness is a gateway with this surface behind a real listener.
type harness struct {
	t    *testing.T
	gw   *gateway.Gateway
	srv  *server.Server
	ts   *httptest.Server
	gate gate
}

func newHarness(t *testing.T) *harness { return newHarnessOn(t, memory.New(), "") }

func newHarnessOn(t *testing.T, j journal.Journal, page string) *harness {
	t.Helper()
	h := &harness{t: t, gate: make(gate)}
	a := scripts(h.gate)
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}, "Max": {Agent: a}}, DefaultAgent: "eliza", Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.gw, h.srv = gw, server.New(server.Options{Token: secret, Users: users{}})
	Register(h.srv, gw, page)
	h.ts = httptest.NewUnstartedServer(h.srv)
	h.ts.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(socketBuffer); err != nil {
			t.Error(err)
		}
		return ctx
	}
	h.ts.Start()
	t.Cleanup(func() {
		h.srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		h.ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// open lets the agent take a step.
func (h *harness) open() {
	h.t.Helper()
	select {
	case h.gate <- struct{}{}:
	case <-time.After(patience):
		h.t.Fatal("the agent doesn't wait")
	}
}

// visible returns the visible text of the newest turn of a session from the log.
func (h *harness) visible(c *client, key string) (text string) {
	h.t.Helper()
	id := c.call("chat.history", map[string]any{"sessionKey": key})["sessionId"].(string)
	err := h.gw.ViewTranscript(h.t.Context(), admin, id, func(t *transcript.Transcript) bool {
		text = t.Visible(t.Turns[len(t.Turns)-1].ID)
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

// controlUI makes a folder like that of the Control UI.
func controlUI(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"index.html": `<html lang="en"><head><title>x</title><script src="a.js"></script><script>x()</script></head></html>`, "assets/a.js": "1"} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
