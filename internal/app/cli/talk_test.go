package cli

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// What happens in conversations comes out of the sockets of the program as it is put together.
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

// A purge takes along how far its subject has read, also in what others own.
func TestPurgeOfPositions(t *testing.T) {
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	admin, alice, bob := gateway.Principal{Admin: true}, gateway.Principal{Tenant: "t", Subject: "alice"}, gateway.Principal{Tenant: "t", Subject: "bob"}
	s, _, err := gw.Create(t.Context(), alice, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []gateway.Command{
		{Type: gateway.CommandShare, Subject: gateway.Everybody, Access: gateway.AccessRead},
		{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}},
	} {
		if _, err := gw.Do(t.Context(), admin, s.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []gateway.Principal{alice, bob} {
		if _, err := gw.MarkRead(t.Context(), p, s.ID, 0); err != nil {
			t.Fatal(err)
		}
	}
	purged, err := data.NewPurger(gw, j, collections(), slog.New(slog.DiscardHandler)).Purge(t.Context(), admin, data.Subject{Tenant: "t", Subject: "bob"}, false)
	if err != nil || purged.Keys["read"] != 1 {
		t.Errorf("%+v, %v", purged, err)
	}
	left, err := j.Keys(t.Context(), gateway.PositionPrefix)
	if err != nil || len(left) != 1 || !gateway.PositionOf(left[0].Key, "t", "alice") {
		t.Errorf("left %+v, %v", left, err)
	}
}
