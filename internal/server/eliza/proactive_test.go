package eliza

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/push"
)

// told collects the frames for sockets.
type told struct {
	mu     sync.Mutex
	frames []hub.Frame
}

func (s *told) send(f hub.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, f)
}

var ids = regexp.MustCompile(`"(id|timestamp)":("[0-9a-f-]{36}"|\d+)`)

// take waits until the bubble is idle and returns the new frames without their ids.
func (s *told) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, f := range s.frames {
		all = append(all, f.Conversation+" "+ids.ReplaceAllString(string(f.JSON), `"$1":_`))
	}
	s.frames = nil
	return strings.Join(all, "\n")
}

// A message that an agent sends unasked is sent to sockets once, after it is stored. Answers to users never are.
func TestProactive(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		t := h.t
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var got told
		watch := func() {
			w := NewProactive(slog.New(slog.DiscardHandler))
			h.watcher = w
			h.stop()
			h.start()
			gw := h.gw
			go w.Run(ctx, gw, got.send)
		}
		watch()
		h.do(200, nil, "POST", "/api/conversations", `{"id":"c"}`)
		admin := gateway.Principal{Admin: true}
		inject := func(m gateway.CommandMessage) {
			t.Helper()
			if _, err := h.gw.Do(t.Context(), admin, "c", gateway.Command{Type: gateway.CommandInject, Message: &m}); err != nil {
				t.Fatal(err)
			}
		}
		answers := ""
		push := func(key string, lines ...string) *push.Producer {
			t.Helper()
			pr, _, err := h.pushes.Push(t.Context(), admin, "c", push.Options{Dialect: "eliza-actions", Key: key, Answers: answers})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if err := pr.Write(t.Context(), []byte(l+"\n")); err != nil {
					t.Fatal(err)
				}
			}
			return pr
		}
		frame := func(text, source string) string {
			return `c {"type":"proactive-message","conversationId":"c","message":{"id":_,"role":"assistant","text":"` + text + `","timestamp":_,"source":"` + source + `"}}`
		}
		check := func(what, want string) {
			t.Helper()
			if s := got.take(); s != want {
				t.Errorf("%s:\n got %s\nwant %s", what, s, want)
			}
		}
		inject(gateway.CommandMessage{Text: "a <b>", Source: "plugin"})
		inject(gateway.CommandMessage{Text: "no source"})
		check("injected", frame("a <b>", "plugin")+"\n"+frame("no source", "autonomy"))
		inject(gateway.CommandMessage{Text: "x", Source: clientChat})
		inject(gateway.CommandMessage{Text: " "})
		inject(gateway.CommandMessage{Text: "x", Role: event.User})
		inject(gateway.CommandMessage{Text: "x", Role: event.System})
		check("of a chat, blank, of others", "")
		inject(gateway.CommandMessage{Parts: []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: "https://example.org/a.png", MIME: "image/png"}}}})
		if s := got.take(); !strings.Contains(s, `"text":"","timestamp":_,"source":"autonomy","attachments":[{"id":`) {
			t.Errorf("a picture: %s", s)
		}
		h.send("c", "hello")
		check("a chat's turn", "")

		pr := push("1", `{"type":"chunk","text":"Look:"}`, `{"type":"callback","text":"searching"}`, `{"type":"callback","text":"found"}`)
		check("while it runs", "")
		if err := pr.Write(t.Context(), []byte(`{"type":"done"}`+"\n")); err != nil {
			t.Fatal(err)
		}
		check("an unasked turn", frame(`Look:\n\nfound`, "autonomy"))
		if listed := h.messages("c"); listed[len(listed)-1].Text != "searching\n\nLook:\n\nfound" {
			t.Errorf("listed as %q", listed[len(listed)-1].Text)
		}
		push("2", `{"type":"done"}`)
		check("a silent turn", "")

		// A turn that began before a restart.
		push("3", `{"type":"chunk","text":"before"}`)
		synctest.Wait()
		watch()
		pr = push("3") // resumed after the interruption
		if err := pr.Write(t.Context(), []byte(`{"type":"chunk","text":" and after"}`+"\n"+`{"type":"done"}`+"\n")); err != nil {
			t.Fatal(err)
		}
		check("over a restart", frame("before and after", "autonomy"))

		// An answer is not sent to sockets, even if a restart interrupted it.
		answers = h.messages("c")[0].ID
		push("4", `{"type":"chunk","text":"an answer"}`, `{"type":"done"}`)
		push("5", `{"type":"chunk","text":"another"}`)
		synctest.Wait()
		watch()
		pr = push("5")
		if err := pr.Write(t.Context(), []byte(`{"type":"done"}`+"\n")); err != nil {
			t.Fatal(err)
		}
		check("answers", "")
		if listed := h.messages("c"); listed[len(listed)-1].Text != "another" || listed[len(listed)-2].Text != "an answer" {
			t.Errorf("listed %+v", listed)
		}
		h.do(200, nil, "POST", "/api/conversations", `{"id":"past"}`)
		h.do(200, nil, "POST", at("past", "/import"), `{"messages":[{"role":"assistant","text":"long ago"}]}`)
		check("imported", "")
	})
}

// An answer of the upstream to another client is sent to sockets. A turn that the upstream began is not mistaken for the answer
// to a message of this client.
func TestProactiveFromSession(t *testing.T) {
	up := &agenttest.Follower{}
	bubble(t, up, func(h *harness) {
		t, release := h.t, make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var got told
		w := NewProactive(slog.New(slog.DiscardHandler))
		h.watcher = w
		h.stop()
		h.start()
		go w.Run(ctx, h.gw, got.send)
		h.do(200, nil, "POST", "/api/conversations", `{"id":"c"}`)
		h.do(200, nil, "POST", at("c", "/messages"), `{"text":"hi"}`)
		got.take()
		up.SetRun("r", func(_ context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
			if err := out.Text("answered elsewhere"); err != nil {
				return err
			}
			<-release
			return nil
		})
		up.AddEntries("c", agenttest.MessageEntry("m", "tui", "hello", time.Time{}), agent.Entry{Key: "r", Run: &agent.Run{Answers: "m"}})
		if frames := got.take(); frames != "" {
			t.Errorf("told while it runs: %s", frames)
		}
		f, err := h.gw.Feed(t.Context(), gateway.Principal{Admin: true}, "c")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		if turn := runningTurn(f.Feed, false); turn != "" {
			t.Errorf("%s is taken for an answer that runs", turn)
		}
		if runningTurn(f.Feed, true) == "" {
			t.Error("it can't be stopped")
		}
		close(release)
		if frames := got.take(); !strings.Contains(frames, "answered elsewhere") {
			t.Errorf("told: %q", frames)
		}
	})
}
