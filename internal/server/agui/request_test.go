package agui

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// Two users who choose the same id have two threads, and neither sees or changes anything of the other.
func TestThreadsAreTheirs(t *testing.T) {
	h := newHarness(t, asking, quota.Limits{})
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, runRoute, question("same", "m1", "of alice")); !strings.Contains(stream, "May I?") {
		t.Fatalf("alice gets %s", stream)
	}
	connect, resume := `{"threadId":"same","runId":"r"}`, `{"threadId":"same","runId":"r","resume":[{"interruptId":"ask","status":"resolved","payload":true}]}`
	if stream := h.Ask(http.StatusOK, "bob", http.MethodPost, "/agui/agent/eliza/connect", connect); strings.Contains(stream, "alice") {
		t.Errorf("bob gets %s", stream)
	}
	h.Ask(http.StatusBadRequest, "bob", http.MethodPost, runRoute, resume)
	if got := h.Ask(http.StatusOK, "bob", http.MethodPost, "/agui/agent/eliza/stop/same", ""); !strings.Contains(got, "false") {
		t.Errorf("bob stops: %s", got)
	}
	h.Ask(http.StatusOK, "bob", http.MethodPost, runRoute, question("same", "m1", "of bob"))
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, runRoute, resume); !strings.Contains(stream, "the answer is approve") || strings.Contains(stream, "bob") {
		t.Errorf("alice gets %s", stream)
	}
}

// A refusal is one sentence of plain text, because clients show the body as it is.
//
// The last request proves that none of the refused ones has created a turn, behind which it would wait.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	user := func(content string) string {
		return `{"threadId":"c","runId":"r","messages":[{"id":"m","role":"user","content":` + content + `}]}`
	}
	for _, test := range []struct {
		path, body string
		status     int
		want       string
	}{
		{runRoute, "", 400, "The body must be the input of a run."},
		{runRoute, "{}", 400, "The run needs a threadId."},
		{runRoute, "{", 400, ""},
		{runRoute, `{"threadId":"c","messages":[]}`, 400, "A new thread begins with a message of the user"},
		{runRoute, user(`7`), 400, "The content of a message must be"},
		{runRoute, user(`[{"type":"image"}]`), 400, `A part of type "image" can't be sent here`},
		{runRoute, user(`[{"type":"image","source":{"type":"url","value":"javascript:x"}}]`), 400, `A part of type "image"`},
		{runRoute, user(`"` + strings.Repeat("x", maxBody) + `"`), 413, ""},
		{runRoute + "?on_disconnect=x", user(`"hi"`), 400, `Unknown value "x" of on_disconnect`},
		{"/agui/agent/nobody/run", user(`"hi"`), 404, `There is no agent "nobody".`},
		{"/agui", `{"method":"x"}`, 404, `This runtime has no method "x".`},
	} {
		text := h.Ask(test.status, "alice", http.MethodPost, test.path, test.body)
		if !strings.Contains(text, test.want) || strings.HasPrefix(text, "{") || !strings.HasSuffix(text, ".") {
			t.Errorf("%s %.80s: %q, want %q", test.path, test.body, text, test.want)
		}
	}
	h.Ask(http.StatusOK, "alice", http.MethodPost, runRoute, user(`"hi"`)) // nothing was left in the way
}

// A page that still shows a deleted thread doesn't create it again.
func TestDeletedThread(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	res := h.Send("alice", http.MethodPost, runRoute, question("c", "m1", "hi"))
	conversation := res.Header.Get("Leat-Conversation")
	h.outcome(conversation)
	if _, err := h.Gateway.Do(t.Context(), gateway.Principal{Subject: "alice"}, conversation, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if text := h.Ask(http.StatusGone, "alice", http.MethodPost, runRoute, question("c", "m2", "hi")); text != "This chat was deleted; start a new one." {
		t.Errorf("%q", text)
	}
}

// The tools of a run are offered to the agent.
func TestToolsOfThePage(t *testing.T) {
	h := newHarness(t, outputtest.ListTools, quota.Limits{})
	run := func(status int, tools string) string {
		body := `{"threadId":"c` + tools + `","runId":"r","tools":` + tools + `,"messages":[{"id":"m","role":"user","content":"hi"}]}`
		return h.Ask(status, "alice", http.MethodPost, runRoute, strings.Replace(body, "c"+tools, "c"+strconv.Itoa(len(tools)), 1))
	}
	stream := run(http.StatusOK, `[{"name":"map","description":"shows a map","parameters":{"type":"object"}},{"name":"beep","description":""}]`)
	if want := `[{\"name\":\"map\",\"description\":\"shows a map\",\"parameters\":{\"type\":\"object\"}},{\"name\":\"beep\"}]`; !strings.Contains(stream, want) {
		t.Errorf("the agent is offered other tools than %s: %s", want, stream)
	}
	if text := run(http.StatusBadRequest, `[{"name":"two words"}]`); !strings.Contains(text, `"two words"`) {
		t.Errorf("a tool with an invalid name: %q", text)
	}
}

// The default agent has two names.
func TestInfo(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	for _, text := range []string{h.Ask(200, "", http.MethodGet, "/agui/info", ""), h.Ask(200, "", http.MethodPost, "/agui", `{"method":"info"}`)} {
		var info runtimeInfo
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			t.Fatal(err)
		}
		if info.Agents["eliza"].Name != "eliza" || info.Agents["default"] != info.Agents["eliza"] {
			t.Errorf("%s", text)
		}
	}
}
