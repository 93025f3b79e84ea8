package eliza

import (
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// Users who may read a conversation get a frame for a rename and a truncate, and for nothing else.
func TestUpdates(t *testing.T) {
	var mu sync.Mutex
	var sent []hub.Frame
	u := &Updates{Send: func(f hub.Frame) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, f)
	}}
	j := memory.New()
	gw, err := gateway.New(gateway.Config{
		Journal: j, Dialects: all.Registry(), Agents: gateway.Agents{"eliza": {Agent: echo}}, DefaultAgent: "eliza", Hooks: gateway.Hooks{Watchers: []gateway.Watcher{u}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, gw: gw, srv: server.New(server.Options{Token: secret})}
	Register(h.srv, gw, Options{})
	defer h.stop()
	h.do(200, nil, "POST", "/api/conversations", `{"id":"c"}`)
	r := h.send("c", "hello")
	mu.Lock()
	if len(sent) == 0 || sent[0].Conversation != "c" {
		t.Errorf("making it told %v", sent)
	}
	sent = nil
	mu.Unlock()
	h.do(200, nil, "PATCH", "/api/conversations/c", `{"title":"A & B"}`)
	h.do(200, nil, "GET", "/api/conversations", "")
	h.do(200, nil, "POST", at("c", "/messages/truncate"), `{"messageId":`+quote(r.UserMessageID)+`}`)
	rec := httptest.NewRecorder()
	h.srv.ServeHTTP(rec, h.request("PATCH", "/api/conversations/none", `{"title":"x"}`))
	if rec.Code != 404 {
		t.Errorf("of none: %d", rec.Code)
	}
	mu.Lock()
	defer mu.Unlock()
	frame := hub.Frame{Conversation: "c", Key: "conversation/c", JSON: []byte(`{"type":"conversation-updated","conversation":{"id":"c","title":"A & B","roomId":"c","createdAt":"TIME","updatedAt":"TIME"}}`)}
	for i := range sent {
		sent[i].JSON = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAll(sent[i].JSON, []byte("TIME"))
	}
	if d := cmp.Diff([]hub.Frame{frame, frame}, sent); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A conversation that no list contains causes no frame.
func TestUpdatesOfUnlisted(t *testing.T) {
	for _, unlisted := range []bool{true, false} {
		n := 0
		u := &Updates{Send: func(hub.Frame) { n++ }}
		u.Committed(&journal.Summary{ID: "c", Unlisted: unlisted}, []event.Event{{Type: event.ConversationUpdate, Body: &event.Body{}}})
		if told := n > 0; told == unlisted {
			t.Errorf("unlisted %v: %d frames", unlisted, n)
		}
	}
}

// Creation and deletion cause a frame for the users who could read the conversation. The deletion does not contain its title.
func TestUpdatesComeAndGo(t *testing.T) {
	var sent []hub.Frame
	u := &Updates{Send: func(f hub.Frame) { sent = append(sent, f) }}
	was := journal.Summary{ID: "c", Tenant: "t", Owner: "alice", Title: "secret", Grants: []journal.Grant{{Subject: "bob", Access: gateway.AccessRead}}}
	u.Committed(&was, []event.Event{{Type: event.TurnEnd}, {Type: event.ConversationDelete}})
	gone := was
	gone.Title = ""
	want := []hub.Frame{{Deleted: &gone, Key: "conversation/c", JSON: []byte(`{"type":"conversation-deleted","conversationId":"c"}`)}}
	if d := cmp.Diff(want, sent); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
