package eliza

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// The requests of clients of spring 2026 besides the chat.
func TestWelcome(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		id := h.create()
		rec := httptest.NewRecorder()
		h.srv.ServeHTTP(rec, h.request("POST", at(id, "/greeting?lang=en"), ""))
		if got, want := strings.TrimSpace(rec.Body.String()), `{"text":"","agentName":"eliza","generated":false,"persisted":false}`; rec.Code != 200 || got != want {
			t.Errorf("%d %s\nwant %s", rec.Code, got, want)
		}
		h.refused(404, "Conversation not found", "POST", at("none", "/greeting"), "")

		r := httptest.NewRequest("GET", "http://localhost/api/auth/status", nil)
		rec = httptest.NewRecorder()
		h.srv.ServeHTTP(rec, r)
		if got, want := strings.TrimSpace(rec.Body.String()), `{"required":true,"pairingEnabled":false,"expiresAt":null}`; rec.Code != 200 || got != want {
			t.Errorf("%d %s\nwant %s", rec.Code, got, want)
		}
	})
}

// Only the caller's own conversations without messages are deleted, and never the open one.
func TestCleanup(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		empty, titled, used, kept := h.create(), h.create(), h.create(), h.create()
		h.do(200, nil, "PATCH", at(titled, ""), `{"title":"a plan"}`)
		h.send(used, "hi")
		imported := h.create() // an import leaves nothing unread
		h.do(200, nil, "POST", at(imported, "/import"), `{"messages":[{"role":"user","text":"x"}]}`)
		alice := []string{"Leat-Subject", "alice", "Leat-Tenant", "t1"}
		var hers conversationResponse
		h.do(200, &hers, "POST", "/api/conversations", `{}`, alice...)
		var answer struct{ Deleted []string }
		cleanup := func(want []string, headers ...string) {
			t.Helper()
			h.do(200, &answer, "POST", "/api/conversations/cleanup-empty", `{"keepId":"`+kept+`"}`, headers...)
			slices.Sort(want)
			if slices.Sort(answer.Deleted); !slices.Equal(answer.Deleted, want) {
				t.Errorf("deleted %q, want %q", answer.Deleted, want)
			}
		}
		cleanup([]string{empty, titled})
		cleanup(nil)
		h.do(200, nil, "GET", at(used, ""), "")
		h.do(200, nil, "GET", at(kept, ""), "")
		h.do(200, nil, "GET", at(imported, ""), "")
		h.refused(404, "Conversation not found", "GET", at(empty, ""), "")
		cleanup([]string{hers.Conversation.ID}, alice...)
	})
}
