package whatsapp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/whatsapp"
	"github.com/leat-dev/leat/internal/channel"
)

// Messages, commands, buttons and files become messages of the pipeline.
func TestInbound(t *testing.T) {
	n, server, received, _ := newNumber(t, fake.Options{})
	hidden := fake.Person{ID: "US.77", Name: "Bob", IsHidden: true}
	for _, c := range []struct {
		what string
		do   func() string
		want channel.InboundMessage
	}{
		{"text", func() string { return server.Say(ann, "grüße 👍") }, channel.InboundMessage{Content: "grüße 👍"}},
		{"command", func() string { return server.Say(ann, "/agent b") }, channel.InboundMessage{
			Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
		}},
		{"button", func() string { return server.Press(ann, "1", "approve") }, channel.InboundMessage{Content: "approve"}},
		{"button of a command", func() string { return server.Press(ann, "/stop", "Stop") }, channel.InboundMessage{
			Content: "/stop", Hints: channel.RoutingHints{ForceSync: true, Command: "stop"},
		}},
		{"row", func() string { return server.Pick(ann, "2", "deny") }, channel.InboundMessage{Content: "deny"}},
		{"hidden number", func() string { return server.Say(hidden, "hi") }, channel.InboundMessage{Content: "hi", SenderID: "US.77", SenderName: "Bob"}},
	} {
		c.want.ID = c.do()
		if c.want.SenderID == "" {
			c.want.SenderID, c.want.SenderName = ann.ID, ann.Name
		}
		got := received.take()
		if len(got) != 1 || got[0].ID != c.want.ID || got[0].Content != c.want.Content || got[0].Hints != c.want.Hints || got[0].SenderID != c.want.SenderID ||
			got[0].ChatID != c.want.SenderID || got[0].SenderName != c.want.SenderName || got[0].Timestamp.IsZero() {
			t.Errorf("%s:\n%+v, want\n%+v", c.what, got, c.want)
		}
	}
	server.React(ann, "wamid.1", "👍")
	if got := received.take(); len(got) != 0 {
		t.Errorf("a reaction has become a message: %+v", got)
	}
	server.SendFile(ann, fake.File{Name: "a.pdf", Type: "application/pdf", Content: []byte("%PDF")}, "Read this")
	got := received.take()
	if len(got) != 1 || got[0].Content != "Read this" || len(got[0].Media) != 1 || got[0].Media[0].Name != "a.pdf" {
		t.Fatalf("%+v", got)
	}
	r, err := n.FetchMedia(t.Context(), got[0].Media[0])
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "%PDF" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	check(t, server)
}

// A message that can't be stored is not confirmed, and arrives again. One that was confirmed and comes again is the same message.
func TestRedelivery(t *testing.T) {
	_, server, received, _ := newNumber(t, fake.Options{})
	received.isBroken = true
	id := server.Say(ann, "hello")
	if d := server.Deliveries(); d[0].Status != http.StatusServiceUnavailable {
		t.Errorf("HTTP %d", d[0].Status)
	}
	received.isBroken = false
	server.Redeliver()
	server.Repeat(id)
	if got := received.take(); len(got) != 1 || got[0].ID != id {
		t.Errorf("%+v", got)
	}
}

// Requests that the platform has not signed have no effect.
func TestUnsigned(t *testing.T) {
	n, server, received, log := newNumber(t, fake.Options{})
	server.Say(ann, "hello")
	received.take()
	body := string(server.Deliveries()[0].Body)
	for name, c := range map[string]struct {
		method, query, body, signature string
		status                         int
	}{
		"no signature":    {http.MethodPost, "", body, "", 401},
		"wrong signature": {http.MethodPost, "", body, server.Sign([]byte("other")), 401},
		"other digest":    {http.MethodPost, "", body, strings.TrimPrefix(server.Sign([]byte(body)), "sha256="), 401},
		"other method":    {http.MethodPut, "", body, server.Sign([]byte(body)), 405},
		"wrong token":     {http.MethodGet, "?hub.mode=subscribe&hub.verify_token=x&hub.challenge=c", "", "", 403},
		"no token":        {http.MethodGet, "?hub.mode=subscribe&hub.challenge=c", "", "", 403},
		"too long":        {http.MethodPost, "", strings.Repeat(" ", maxWebhook+1), "", 400},
		"no JSON":         {http.MethodPost, "", "x", server.Sign([]byte("x")), 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/hook"+c.query, strings.NewReader(c.body))
		r.Header.Set("X-Hub-Signature-256", c.signature)
		w := httptest.NewRecorder()
		n.ServeWebhook(w, r, received)
		if w.Code != c.status {
			t.Errorf("%s: HTTP %d, want %d", name, w.Code, c.status)
		}
	}
	if got := received.take(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	n.options.Number = "200"
	server.Say(ann, "hello")
	if got := received.take(); len(got) != 0 {
		t.Errorf("the message of another number: %+v", got)
	}
	n.options.Number = "100"
	server.Status(ann.ID, "wamid.1", "delivered", 0, "")
	if text := log.String(); strings.Contains(text, "ERROR") {
		t.Error(text)
	}
	server.Status(ann.ID, "wamid.1", "failed", 131047, "Re-engagement message")
	if list := received.failures; len(list) != 1 || !strings.HasPrefix(list[0], ann.ID+": ") || !strings.Contains(list[0], "24 hours") {
		t.Errorf("%q", list)
	}
	if text := log.String(); strings.Contains(text, ann.ID) {
		t.Error(text)
	}
}

// Run checks the token and the number, and shows that messages were read.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, received, _ := newNumber(t, fake.Options{})
		server.Fail(fake.Fault{Route: fake.RouteNumber, Status: 403, Code: codeApp}) // a limit, and no refusal of the token
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, received) }()
		server.Say(ann, "hello")
		if synctest.Wait(); server.IsTyping(ann.ID) {
			t.Error("the first request failed")
		}
		time.Sleep(time.Second) // the wait before the second request
		if synctest.Wait(); !server.IsTyping(ann.ID) || !server.Messages(ann.ID)[0].IsRead {
			t.Error("no typing indicator")
		}
		if n.Link() != "https://wa.me/15550100000" {
			t.Errorf("link %q", n.Link())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		n.client.token = "wrong"
		if err := n.Run(t.Context(), received); refusal(err).Code != codeToken {
			t.Error(err)
		}
		n.client.token, n.options.Number = "token", "101"
		if err := n.Run(t.Context(), received); refusal(err).Subcode != subcodeMissing || errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
	})
}
