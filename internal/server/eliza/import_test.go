package eliza

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/internal/gateway"
)

func TestImport(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		body := `{"title":"Old times","messages":[{"role":"user","text":"hi","timestamp":900000000000.5},{"role":"assistant","content":"hello","timestamp":900000001000},
			{"role":"system","text":"no"},{"role":"user","text":" "},{"role":"user","text":"no time"}]}`
		var got, again importResponse
		h.do(200, &got, "POST", at(c, "/import"), body)
		h.do(200, &again, "POST", at(c, "/import"), body)
		if d := cmp.Diff([]importResponse{{ConversationID: c, Inserted: 3, Skipped: 2}, {ConversationID: c, Skipped: 5, AlreadyPopulated: true}}, []importResponse{got, again}); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		want := []message{
			{Role: "user", Text: "hi", Timestamp: 900000000000, Source: "import"},
			{Role: "assistant", Text: "hello", Timestamp: 900000001000, Source: "import"},
			{Role: "user", Text: "no time", Timestamp: h.messages(c)[2].Timestamp, Source: "import"},
		}
		if d := cmp.Diff(want, h.messages(c), cmpopts.IgnoreUnexported(message{}), cmpopts.IgnoreFields(message{}, "ID")); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		h.refused(404, "Conversation not found", "POST", at("none", "/import"), body)
		h.refused(400, "", "POST", at(c, "/import"), `{"messages":[{"role":"user","content":["x"]}]}`)
		var one conversationResponse
		h.do(200, &one, "GET", at(c, ""), "")
		if one.Conversation.Title != "Old times" {
			t.Errorf("title %q", one.Conversation.Title)
		}
		h.do(200, &one, "PATCH", at(c, ""), `{"generate":true}`)
		if one.Conversation.Title != "hi" {
			t.Errorf("made title %q", one.Conversation.Title)
		}
		h.do(200, &one, "PATCH", at(c, ""), `{"generate":true,"title":" Given "}`)
		if one.Conversation.Title != "Given" {
			t.Errorf("given title %q", one.Conversation.Title)
		}
		h.do(200, &one, "PATCH", at(h.create(), ""), `{"generate":true}`)
		if one.Conversation.Title != newChat {
			t.Errorf("title of nothing %q", one.Conversation.Title)
		}
	})
}

// The title that clients show for a conversation without a title means no title.
func TestUnnamed(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		t := h.t
		h.do(200, nil, "POST", "/api/conversations", `{"id":"c","title":"New Chat"}`)
		h.send("c", "Hello")
		if title, err := gateway.FirstTitle(t.Context(), h.gw, gateway.Principal{Admin: true}, "c"); err != nil || title != "Hello" {
			t.Errorf("%q, %v", title, err)
		}
		title := func() string {
			t.Helper()
			s, err := h.journal.Conversation(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			return s.Title
		}
		if got := title(); got != "Hello" {
			t.Errorf("title %q", got)
		}
		h.do(200, nil, "PATCH", "/api/conversations/c", `{"title":"New Chat"}`)
		if got := title(); got != "" {
			t.Errorf("taken away it is %q", got)
		}
		if h.send("c", "Another"); title() != "Another" {
			t.Errorf("made again it is %q", title())
		}
	})
}
