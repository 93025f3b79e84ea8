package cli

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Events of conversations are sent on the sockets of the complete program, not only in tests of its packages.
func TestTalkOfTheProgram(t *testing.T) {
	f := serveFile(t, `{agents: {main: {kind: demo, speed: 0}}}`)
	do := func(method, path, body string) string {
		t.Helper()
		code, got := f.ask(method, path, "", body)
		if code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, code, got)
		}
		return got
	}
	wants := func(kind, pattern string) {
		t.Helper()
		if got := f.frame(`"type":"` + kind + `"`); !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("got  %s\nwant %s", got, pattern)
		}
	}
	do("POST", "/api/conversations", `{"id":"c"}`)
	wants("conversation-updated", `"id":"c","title":"New Chat","roomId":"c"`)
	do("POST", "/api/conversations/c/messages", `{"text":"6 * 7"}`)
	wants("conversation-updated", `"id":"c","title":"6 \* 7","roomId":"c"`)
	do("POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"By the way"}}`)
	wants("proactive-message", `"conversationId":"c","message":{"id":"[^"]+","role":"assistant","text":"By the way","timestamp":\d+,"source":"autonomy"}`)
	if list := do("GET", "/api/conversations", ""); !strings.Contains(list, `"unread":true`) {
		t.Errorf("listed %s", list)
	}
	do("POST", "/api/conversations/c/read", `{}`)
	if list := do("GET", "/api/conversations", ""); strings.Contains(list, `"unread"`) {
		t.Errorf("listed %s", list)
	}
}
