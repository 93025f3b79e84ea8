//go:build unix

package plugins_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/server/plugins"
	store "github.com/leat-dev/leat/internal/service/plugins"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const secret = "a-token-for-this-test"

// TestMain runs the test binary as a plugin if it was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// child is a plugin that does what the message says.
func child() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var told struct {
			Type, Turn string
			Message    agent.Message
		}
		_ = json.Unmarshal(in.Bytes(), &told) // an error's message is a string
		switch told.Type {
		case "hello":
			fmt.Println(`{"type":"ready","protocol":1}`)
		case "turn":
			fmt.Printf(`{"type":"text","turn":"%s","text":"%d %s%s %s"}`+"\n", told.Turn, os.Getpid(), os.Getenv("WORD"), os.Getenv("LEAT_API_TOKEN"), told.Message.Text)
			switch told.Message.Text {
			case "rubbish":
				fmt.Println("Segmentation fault")
			case "stay":
			default:
				fmt.Printf(`{"type":"turn.end","turn":"%s","outcome":"completed"}`+"\n", told.Turn)
			}
		}
	}
}

// folder makes a plugin of this test's binary, and returns its folder.
func folder(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{store.ManifestFile: manifest, "run": fmt.Sprintf("#!/bin/sh\nexec '%s' child\n", self)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const manifest = `{"protocol":1,"name":"weather","version":"1.2.0","kind":"agent","command":["./run"],"env":["WORD"]}`

type harness struct {
	t     *testing.T
	gw    *gateway.Gateway
	hub   *hub.Hub
	url   string
	close func()
}

// newHarness opens a gateway whose plugins are in dir. If dir is empty, plugins are off.
func newHarness(t *testing.T, dir string) *harness {
	t.Helper()
	j, quiet := memory.New(), slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(quiet)
	if err := roster.Add("taken", gateway.Agent{Kind: "test"}); err != nil {
		t.Fatal(err)
	}
	var opt plugins.Options
	runs := host.New(host.Config{Roster: roster, Env: []string{"WORD"}, Dialect: leat.Dialect(), Journal: j, Log: quiet})
	if dir != "" {
		s, err := store.Open(store.Config{Dir: dir, Runtime: runs, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.List() {
			_ = runs.Resume(p) // the list tells
		}
		opt = plugins.Options{Store: s, State: runs.State}
	}
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: roster, Hooks: gateway.Hooks{Watchers: []gateway.Watcher{runs}}})
	if err != nil {
		t.Fatal(err)
	}
	roster.Start()
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs.Start(gw)
	h := &harness{t: t, gw: gw, hub: hub.New(gw)}
	opt.Send = h.hub.Send
	srv := server.New(server.Options{Token: secret})
	plugins.Register(srv, gw, opt)
	log := signals.New(j, quiet)
	if err := log.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	elizaws.Register(srv, gw, elizaws.Options{Signals: log, Hub: h.hub, Agent: status.NewAgent("", "")})
	ts := httptest.NewServer(srv)
	h.url = ts.URL
	h.close = sync.OnceFunc(func() {
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		runs.Close()
		roster.Close()
		if opt.Store != nil {
			opt.Store.Close()
		}
		_ = j.Close()
	})
	t.Cleanup(h.close)
	return h
}

// call makes a request of the admin.
func (h *harness) call(method, path, body string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

func (h *harness) want(status int, answer, method, path, body string) {
	h.t.Helper()
	if code, got := h.call(method, path, body); code != status || !strings.Contains(got, answer) {
		h.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, code, got, status, answer)
	}
}

// frames connects to /ws and returns what takes the next n frames of a type.
func (h *harness) frames(kind string) func(n int) []string {
	h.t.Helper()
	c, _, err := websocket.Dial(h.t.Context(), h.url+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.CloseNow() })
	read := func() string {
		_, b, err := c.Read(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		return string(b)
	}
	read() // status: the socket is active
	return func(n int) (all []string) {
		h.t.Helper()
		for len(all) < n {
			if f := read(); strings.Contains(f, `"type":"`+kind+`"`) {
				all = append(all, f)
			}
		}
		return all
	}
}

// ask sends a message to an agent in a new conversation, and waits for its first word.
func (h *harness) ask(name, text string) (conversation, turn string) {
	h.t.Helper()
	p := gateway.Principal{Admin: true}
	s, _, err := h.gw.Create(h.t.Context(), p, gateway.CreateOptions{Agent: name})
	if err != nil {
		h.t.Fatal(err)
	}
	ack, err := h.gw.Do(h.t.Context(), p, s.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.until(s.ID, func(t *transcript.Transcript) bool { return len(t.Messages) > 1 && t.Messages[1].Visible() != "" })
	return s.ID, ack.Turn
}

// ended waits for the end of a turn and returns it with its text.
func (h *harness) ended(conversation, turn string) (t transcript.Turn, said string) {
	h.t.Helper()
	h.until(conversation, func(tr *transcript.Transcript) bool {
		one := tr.Turn(turn)
		if one == nil || one.Unfinished() {
			return false
		}
		t, said = *one, tr.Messages[1].Visible()
		return true
	})
	return t, said
}

// kill kills the process that answers in a conversation, and returns when.
func (h *harness) kill(conversation string) (at time.Time) {
	h.t.Helper()
	pid := 0
	h.until(conversation, func(t *transcript.Transcript) bool {
		_, err := fmt.Sscan(t.Messages[1].Visible(), &pid)
		return err == nil
	})
	at = time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	return at
}

func (h *harness) until(conversation string, ok func(*transcript.Transcript) bool) {
	h.t.Helper()
	f, err := h.gw.Feed(h.t.Context(), gateway.Principal{Admin: true}, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	limit := time.After(time.Minute)
	for {
		changed, done := f.Notify(), false
		f.View(func(t *transcript.Transcript) { done = ok(t) })
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			h.t.Fatal("it never came to be")
		}
	}
}
