package whatsapp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/whatsapp"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

func to(chat, content string) channel.OutboundMessage {
	return channel.OutboundMessage{Channel: "wa", ChatID: chat, Content: content}
}

// A long answer is split and paced; its first message is a reply.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, _, _ := newNumber(t, fake.Options{PairGap: 6 * time.Second})
		id := server.Say(ann, "hello")
		m := to(ann.ID, "**bold** [link](https://example.com)\n\n"+strings.Repeat("Some words of a long answer. ", 300))
		m.ReplyTo = id
		begin := time.Now()
		if err := n.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		got := server.Messages(ann.ID)[1:]
		if len(got) != 3 || !strings.HasPrefix(got[0].Text, "*bold* link (https://example.com)") || got[0].ReplyTo != id || got[1].ReplyTo != "" {
			t.Errorf("%+v", got)
		}
		if d := time.Since(begin); d != 12*time.Second {
			t.Errorf("three messages took %v", d)
		}
		m.ReplyTo, m.Content = "wamid.gone", "short"
		if err := n.Send(t.Context(), m); err != nil || len(server.Messages(ann.ID)) != 5 {
			t.Errorf("a reply to a message that is gone: %v", err)
		}
		if err := n.Send(t.Context(), to(ann.ID, " \n")); err != nil || len(server.Messages(ann.ID)) != 5 {
			t.Errorf("an empty text: %v", err)
		}
		check(t, server)
	})
}

// Refusals that pass are waited out, those that don't are returned.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, _, _ := newNumber(t, fake.Options{PairGap: 6 * time.Second, Rate: 80})
		server.Say(ann, "hello")
		for _, f := range []fake.Fault{
			{Status: 400, Code: codePair}, {Status: 400, Code: codePair}, {Status: 400, Code: codeNumberMax}, {Status: 500, Code: 131000}, {Status: 503, Code: 2},
		} {
			f.Route = fake.RouteMessages
			server.Fail(f)
		}
		begin := time.Now()
		if err := n.Send(t.Context(), to(ann.ID, "hi")); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 18*time.Second || d > 2*time.Minute {
			t.Errorf("it took %v", d)
		}
		for code, unreachable := range map[int]bool{codeWindow: true, 131026: true, codeToken: true, 131051: false} {
			server.Fail(fake.Fault{Route: fake.RouteMessages, Status: 400, Code: code})
			err := n.Send(t.Context(), to(ann.ID, "hi"))
			if refusal(err).Code != code || errors.Is(err, channel.ErrUnreachable) != unreachable || errors.Is(err, errWindow) != (code == codeWindow) {
				t.Errorf("code %d: %v", code, err)
			}
		}
		_, ch := n.newChat(ann.ID, server.Say(ann, "hello"))
		server.Fail(fake.Fault{Route: fake.RouteRead, Status: 403, Code: 10})
		if err := ch.ShowTyping(t.Context()); err == nil || errors.Is(err, channel.ErrUnreachable) {
			t.Errorf("an indicator that is refused: %v", err)
		}
		time.Sleep(25 * time.Hour)
		if err := n.Send(t.Context(), to(ann.ID, "late")); !errors.Is(err, errWindow) {
			t.Error(err)
		}
		if got := texts(server, ann.ID); len(got) != 1 {
			t.Errorf("%q", got)
		}
		check(t, server)
	})
}

// A message whose request got no answer is not sent again. Those behind it are sent.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, _, _ := newNumber(t, fake.Options{PairGap: 6 * time.Second})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Route: fake.RouteMessages, After: true})
		err := n.Send(t.Context(), to(ann.ID, strings.Repeat("Some words of a long answer. ", 200)))
		if got := texts(server, ann.ID); len(got) != 2 || !errors.Is(err, channel.ErrUnknownOutcome) {
			t.Errorf("%d messages, %v", len(got), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.Send(ctx, to(ann.ID, "hi")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		check(t, server)
	})
}

// Files are sent in the form that the platform has for them, and otherwise as their names.
func TestSendFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server, _, _ := newNumber(t, fake.Options{PairGap: 6 * time.Second})
		server.Say(ann, "hello")
		_, ch := n.newChat(ann.ID, "")
		for _, f := range []live.File{
			{Name: "a.png", Type: "image/png"},
			{Name: "b.mp3", Type: "audio/mpeg"},
			{Name: "c.mp4", Type: "video/mp4"},
			{Name: "e.csv", Type: "text/csv; charset=utf-8"},
			{Name: "f.zip", Type: "application/zip"},
		} {
			f.Content = []byte("content")
			if id, err := ch.SendFile(t.Context(), f); err != nil || id == "" {
				t.Fatal(err)
			}
		}
		var got []string
		for _, m := range server.Messages(ann.ID)[1:] {
			line := m.Type + " " + m.Text
			if m.File != nil {
				line += m.File.Name + " " + m.File.Type
			}
			got = append(got, line)
		}
		want := []string{"image  image/png", "audio  audio/mpeg", "video  video/mp4", "document e.csv text/plain", "text 📎 f.zip"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		known := live.File{Name: "a.png", Type: "image/png", Content: []byte("x"), Key: "k"}
		for _, f := range []fake.Fault{{Status: 400, Code: codePair}, {Status: 400, Code: codeMedia}} {
			f.Route = fake.RouteMessages
			server.Fail(f)
			if _, err := ch.SendFile(t.Context(), known); (f.Code == codePair) != errors.As(err, new(*live.Penalty)) {
				t.Errorf("code %d: %v", f.Code, err)
			}
		}
		uploads := 0
		for _, r := range server.Requests() {
			if r.Route == fake.RouteUpload {
				uploads++
			}
		}
		if list := texts(server, ann.ID); list[len(list)-1] != "📎 a.png" || uploads != 5 {
			t.Errorf("%q after %d uploads", list, uploads)
		}
		picture := live.File{Name: "a.png", Type: "image/png", Content: []byte("x")}
		server.Fail(fake.Fault{Route: fake.RouteUpload, After: true})
		if _, err := ch.SendFile(t.Context(), picture); !errors.Is(err, live.ErrUnsent) {
			t.Errorf("a lost upload: %v", err)
		}
		server.Fail(fake.Fault{Route: fake.RouteMessages, After: true})
		if _, err := ch.SendFile(t.Context(), picture); !errors.Is(err, live.ErrUnknown) {
			t.Errorf("a lost message: %v", err)
		}
		check(t, server)
	})
}

// Answers that are not those of the API are understood. A limit says that the request had no effect; anything else leaves it open.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status        int
		body          string
		unknown, rate bool
	}{
		"proxy":          {502, "<html>Bad Gateway</html>", true, false},
		"limit of proxy": {429, "slow down", false, true},
		"limit":          {403, `{"error":{"code":4,"message":"Application request limit reached"}}`, false, true},
	} {
		err := decode(c.status, []byte(c.body), nil)
		if err == nil || errors.Is(err, live.ErrUnknown) != c.unknown || isRate(err) != c.rate || isRefused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The access token is sent to the platform only.
func TestMediaServer(t *testing.T) {
	c := newClient(defaultURL, "token", false)
	for address, want := range map[string]bool{
		"https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1": true,
		"https://graph.facebook.com/x":                                     true,
		"https://mmg.whatsapp.net/x":                                       true,
		"http://lookaside.fbsbx.com/x":                                     false,
		"https://fbsbx.com.example.com/x":                                  false,
		"https://evilfbsbx.com/x":                                          false,
		"https://example.com/?u=lookaside.fbsbx.com":                       false,
		"": false,
	} {
		if got := outbound.IsWithin(address, c.base, mediaHosts...); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
