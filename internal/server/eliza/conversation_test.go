package eliza

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/server"
)

func TestConversations(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		var first conversationResponse
		h.do(200, &first, "POST", "/api/conversations", `{"includeGreeting":true,"lang":"en","somethingNew":1}`)
		stamp := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		want := conversation{ID: first.Conversation.ID, Title: "New Chat", RoomID: first.Conversation.ID, CreatedAt: stamp, UpdatedAt: stamp}
		if d := cmp.Diff(want, first.Conversation); d != "" || want.ID == "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		time.Sleep(time.Second)
		var mine conversationResponse
		h.do(200, &mine, "POST", "/api/conversations", `{"id":"mine","title":" Trip ","agent":"eliza","metadata":{"scope":"x"}}`)
		want = conversation{
			ID: "mine", Title: "Trip", RoomID: "mine", CreatedAt: iso(time.Now().UnixMilli()), UpdatedAt: iso(time.Now().UnixMilli()),
			Agent: "eliza", Metadata: map[string]json.RawMessage{"scope": json.RawMessage(`"x"`)},
		}
		if d := cmp.Diff(want, mine.Conversation); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		h.refused(409, "already exists", "POST", "/api/conversations", `{"id":"mine"}`)

		time.Sleep(time.Second)
		h.send(first.Conversation.ID, "hi")
		wantOrder(t, h, first.Conversation.ID, "mine")

		time.Sleep(time.Second)
		var patched conversationResponse
		h.do(200, &patched, "PATCH", "/api/conversations/mine", `{"title":"Journey","metadata":{"scope":null,"pin":true},"generate":true}`)
		want.Title = "Journey" // updatedAt is the time of the last message; a rename does not move a conversation up
		want.Metadata = map[string]json.RawMessage{"pin": json.RawMessage(`true`)}
		if d := cmp.Diff(want, patched.Conversation); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		wantOrder(t, h, first.Conversation.ID, "mine")
		h.do(200, &patched, "PATCH", "/api/conversations/mine", `{"title":"  "}`)
		var got conversationResponse
		h.do(200, &got, "GET", "/api/conversations/mine", "")
		if d := cmp.Diff(want, got.Conversation); d != "" {
			t.Errorf("a blank title changed something (-want +got)\n%s", d)
		}

		var gone okay
		h.do(200, &gone, "DELETE", "/api/conversations/mine", "")
		if !gone.OK {
			t.Error("not ok")
		}
		wantOrder(t, h, first.Conversation.ID)
		h.refused(404, "Conversation not found", "GET", "/api/conversations/mine", "")
		h.refused(404, "Conversation not found", "DELETE", "/api/conversations/mine", "")
		h.refused(409, "already exists", "POST", "/api/conversations", `{"id":"mine"}`)
	})
}

func wantOrder(t *testing.T, h *harness, want ...string) {
	t.Helper()
	var l struct{ Conversations []conversation }
	h.do(200, &l, "GET", "/api/conversations", "")
	var got []string
	for _, c := range l.Conversations {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func TestAnEmptyListIsAList(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		var raw map[string]json.RawMessage
		h.do(200, &raw, "GET", "/api/conversations", "")
		if string(raw["conversations"]) != "[]" {
			t.Errorf("%s", raw["conversations"])
		}
		h.do(200, &raw, "GET", at(h.create(), "/messages"), "")
		if string(raw["messages"]) != "[]" {
			t.Errorf("%s", raw["messages"])
		}
	})
}

func TestCreateTwiceWithOneKey(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		var a, b conversationResponse
		h.do(200, &a, "POST", "/api/conversations", `{"title":"T"}`, "Idempotency-Key", "k")
		h.do(200, &b, "POST", "/api/conversations", `{"title":"T"}`, "Idempotency-Key", "k")
		if a.Conversation.ID != b.Conversation.ID {
			t.Errorf("two conversations: %s, %s", a.Conversation.ID, b.Conversation.ID)
		}
		h.refused(409, "another body", "POST", "/api/conversations", `{"title":"U"}`, "Idempotency-Key", "k")
		wantOrder(t, h, a.Conversation.ID)
	})
}

// For a conversation of another user, every route answers as for an unknown one: 404 with Eliza's text. Without a token it
// answers 401.
func TestForeignConversations(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		bob := []string{server.HeaderSubject, "bob"}
		var c conversationResponse
		h.do(200, &c, "POST", "/api/conversations", `{}`, server.HeaderSubject, "alice")
		id := c.Conversation.ID
		var walked int
		for _, r := range h.srv.Routes() {
			if !strings.Contains(r.Pattern, "{id}") {
				continue
			}
			walked++
			path := strings.Replace(r.Pattern, "{id}", id, 1)
			body := `{"text":"hi","messageId":"m","title":"t"}`
			h.refused(404, "Conversation not found", r.Method, path, body, bob...)
			h.refused(404, "Conversation not found", r.Method, strings.Replace(r.Pattern, "{id}", "nowhere", 1), body, bob...)
			w := h.open(&wire{}, r.Method, path, body, "Authorization", "Bearer wrong")
			if w.wait(); w.status != 401 {
				t.Errorf("%s %s with a wrong token: %d", r.Method, path, w.status)
			}
		}
		if walked < 9 {
			t.Errorf("walked %d routes only", walked)
		}
		var l struct{ Conversations []conversation }
		h.do(200, &l, "GET", "/api/conversations", "", bob...)
		if len(l.Conversations) != 0 {
			t.Errorf("bob sees %v", l.Conversations)
		}
	})
}

func TestBadInput(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
		pixel := "iVBORw0KGgo="
		for _, x := range []struct {
			status int
			text   string
			body   string
		}{
			{400, "text is required", ``},
			{400, "text is required", `{}`},
			{400, "text is required", `{"text":" \n"}`},
			{400, "text is required", `{"message":"hi"}`},
			{400, "text can't be a JSON number", `{"text":5}`},
			{400, "object is needed", `["hi"]`},
			{400, "broken JSON", `{"text":"hi"`},
			{400, "UTF-8", "{\"text\":\"\xff\"}"},
			{400, "surrogate", `{"text":"\ud83d"}`},
			{400, "__proto__", `{"text":"hi","__proto__":{"x":1}}`},
			{400, "__proto__", `{"text":"hi","metadata":{"__proto__":1}}`},
			{400, "channelType is invalid", `{"text":"hi","channelType":"SMOKE"}`},
			{400, "clientMessageId", `{"text":"hi","clientMessageId":` + quote(strings.Repeat("ü", 129)) + `}`},
			{400, "control character", `{"text":"hi","clientMessageId":"a\u0000b"}`},
			{400, "source", `{"text":"hi","source":` + quote(strings.Repeat("s", 300)) + `}`},
			{400, "Too many images", `{"text":"hi","images":[{},{},{},{},{}]}`},
			{400, "unsupported type", `{"text":"hi","images":[{"data":"` + pixel + `","mimeType":"image/svg+xml"}]}`},
			{400, "base64", `{"text":"hi","images":[{"data":"???","mimeType":"image/png"}]}`},
			{400, "base64", `{"text":"hi","images":[{"data":"","mimeType":"image/png"}]}`},
			{400, "base64", `{"text":"hi","images":[{"data":"data:image/gif;base64,` + pixel + `","mimeType":"image/png"}]}`},
			{400, "images together exceed", `{"text":"hi","images":[{"data":"` + strings.Repeat("A", 3<<19) + `","mimeType":"image/png"}]}`},
			{413, "larger than", long(server.MaxMessageBody)},
			{413, "at most", `{"text":` + long(4<<20+1) + `}`},
		} {
			h.refused(x.status, x.text, "POST", at(c, "/messages"), x.body)
			h.refused(x.status, x.text, "POST", at(c, "/messages/stream"), x.body)
		}
		for _, x := range []struct {
			status             int
			text, method, path string
			body               string
		}{
			{400, "not allowed", "POST", "/api/conversations", `{"id":"a/b"}`},
			{400, "not allowed", "POST", "/api/conversations", `{"id":"$signals"}`},
			{400, "at most", "POST", "/api/conversations", `{"id":` + quote(strings.Repeat("i", 129)) + `}`},
			{413, "title", "POST", "/api/conversations", `{"title":` + quote(strings.Repeat("t", 2000)) + `}`},
			{503, "Agent is not running", "POST", "/api/conversations", `{"agent":"nobody"}`},
			{400, "metadata", "POST", "/api/conversations", `{"metadata":[1]}`},
			{413, "metadata", "PATCH", at(c, ""), `{"metadata":{"k":` + quote(strings.Repeat("v", 70_000)) + `}}`},
			{400, "messageId is required", "POST", at(c, "/messages/truncate"), `{}`},
			{404, "Message not found", "POST", at(c, "/messages/truncate"), `{"messageId":"m"}`},
			{405, "GET", "PUT", at(c, "/messages"), `{}`},
		} {
			h.refused(x.status, x.text, x.method, x.path, x.body)
		}
		if got := h.messages(c); len(got) != 0 {
			t.Errorf("something was written: %v", got)
		}
	})
}

func TestWithoutAnAgent(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		h.stop()
		h.agents = nil
		h.start()
		h.refused(503, "Agent is not running", "POST", at(c, "/messages"), `{"text":"hi"}`)
		h.refused(503, "Agent is not running", "POST", at(c, "/messages/stream"), `{"text":"hi"}`)
	})
}

func TestDrainingRefusesMessages(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		h.stop()
		header := h.do(503, nil, "POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		if header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %v", header)
		}
		h.start()
	})
}

// The preflight requests of a dashboard with another origin.
func TestCORS(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		h.srv = server.New(server.Options{Token: secret, AllowedOrigins: []string{"https://app.example"}})
		Register(h.srv, h.gw, Options{})
		header := h.do(http.StatusNoContent, nil, "OPTIONS", "/api/conversations/x/messages/stream", "", "Origin", "https://app.example",
			"Access-Control-Request-Method", "POST", "Authorization", "")
		for _, name := range []string{"Authorization", "Content-Type", "X-ElizaOS-Client-Id", "X-ElizaOS-UI-Language", "Last-Event-ID"} {
			if !strings.Contains(header.Get("Access-Control-Allow-Headers"), name) {
				t.Errorf("%s may not be sent: %s", name, header)
			}
		}
		for _, m := range []string{"GET", "POST"} {
			if !strings.Contains(header.Get("Access-Control-Allow-Methods"), m) {
				t.Errorf("%s is not allowed: %s", m, header)
			}
		}
		h.refused(403, "origin", "GET", "/api/conversations", "", "Origin", "https://evil.example")
	})
}

func TestImages(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		h.do(200, nil, "POST", at(c, "/messages"), `{"text":"","images":[{"data":"aGVsbG8=","mimeType":"image/PNG","name":"a.png"},{"data":"data:image/gif;base64,d29ybGQ=","mimeType":"image/gif"}]}`)
		m := h.messages(c)[0]
		want := []attachment{
			{ID: m.ID + ".p1", URL: "data:image/png;base64,aGVsbG8=", Title: "a.png", ContentType: "image", MIMEType: "image/png"},
			{ID: m.ID + ".p2", URL: "data:image/gif;base64,d29ybGQ=", ContentType: "image", MIMEType: "image/gif"},
		}
		if d := cmp.Diff(want, m.Attachments); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		if m.Text != "" || m.Role != "user" {
			t.Errorf("%+v", m)
		}
	})
}
