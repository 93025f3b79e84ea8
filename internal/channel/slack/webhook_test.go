package slack

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/internal/channel"
)

// Requests of Slack become messages; those with another signature, or an old one, are refused.
func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		c := New(Options{
			Name: "slack", Token: "xoxb-test", SigningSecret: "secret", Streaming: true, URL: "http://slack.test/api/", Log: slog.New(slog.DiscardHandler),
		}).(*bot)
		c.client.use(server)
		received := make(inbox, 20)
		serve := func(r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			var ch channel.WebhookChannel = c
			ch.ServeWebhook(w, r, received)
			return w
		}
		if w := serve(server.Challenge("/hook", "c-1")); w.Code != 200 || w.Body.String() != "c-1" {
			t.Errorf("challenge: %d %s", w.Code, w.Body)
		}
		server.Say(ann, "too early")
		if w := serve(server.NextRequest("/hook")); w.Code != http.StatusServiceUnavailable {
			t.Errorf("before the start: %d", w.Code)
		}
		received = run(t, c)
		server.Say(ann, "hello")
		said := server.NextRequest("/hook")
		if w := serve(said); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("event: %d %s", w.Code, w.Body)
		}
		if m := next(t, received); m.Content != "hello" || m.SenderName != "Ann" || m.ChatID != "D7" {
			t.Errorf("%+v", m)
		}
		server.Command(ann, "/new", "")
		if w := serve(server.NextRequest("/hook")); w.Code != 200 || next(t, received).Hints.Command != "new" {
			t.Errorf("command: %d", w.Code)
		}
		s := []byte(`{"type":"event_callback","event":{}}`)
		for what, r := range map[string]*http.Request{
			"old":       server.Sign("/hook", "application/json", s, time.Now().Add(-6*time.Minute)),
			"of later":  server.Sign("/hook", "application/json", s, time.Now().Add(6*time.Minute)),
			"unsigned":  httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(string(s))),
			"forged":    fake.New(fake.Options{SigningSecret: "other"}).Sign("/hook", "application/json", s, time.Now()),
			"other one": otherBody(server.Sign("/hook", "application/json", s, time.Now())),
		} {
			if w := serve(r); w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %d", what, w.Code)
			}
		}
		if w := serve(server.Sign("/hook", "application/json", []byte("{"), time.Now())); w.Code != http.StatusBadRequest {
			t.Errorf("no JSON: %d", w.Code)
		}
		if w := serve(httptest.NewRequest(http.MethodGet, "/hook", http.NoBody)); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET: %d", w.Code)
		}
		c.secret = ""
		if w := serve(server.Sign("/hook", "application/json", s, time.Now())); w.Code != http.StatusUnauthorized {
			t.Errorf("without a secret: %d", w.Code)
		}
		none(t, received)
	})
}

func otherBody(r *http.Request) *http.Request {
	o := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(`{"type":"url_verification","challenge":"x"}`))
	o.Header = r.Header
	return o
}
