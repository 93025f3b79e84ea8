package compat

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

// memoir is an agent that repeats its input: role and text of each earlier message, and the new one.
var memoir = agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
	var b strings.Builder
	for _, m := range in.History {
		fmt.Fprintf(&b, "%s %s|", m.Role, m.Text)
	}
	return out.Text(b.String() + in.Message.Text)
})

func body(rest, messages string) string {
	return `{"model":"eliza","max_tokens":9,` + rest + `"messages":[` + messages + `]}`
}

const hello = `{"role":"user","content":"hello"}`

type anyAnswer struct {
	Content []struct{ Text string }
	Choices []struct{ Message struct{ Content string } }
}

func (a anyAnswer) text() string {
	if len(a.Choices) > 0 {
		return a.Choices[0].Message.Content
	}
	return a.Content[0].Text
}

// say returns the answer and its conversation.
func (h *harness) say(path, body string, headers ...string) (text, conversation string) {
	h.t.Helper()
	var a anyAnswer
	header := h.post(http.StatusOK, &a, path, body, headers...)
	return a.text(), header.Get(headerConversation)
}

func TestSeeds(t *testing.T) {
	h := newHarness(t, one(memoir), quota.Limits{})
	history := `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"no","signature":""},{"type":"text","text":"c"}]},{"role":"user","content":"last"}`
	const want = "system Be kind.|user a\n\nb|assistant c|last"
	if got, _ := h.say("/v1/messages", body(`"system":[{"type":"text","text":"Be kind."}],`, history)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, _ := h.say("/v1/messages", body(`"system":"Be kind.",`, history)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, role := range []string{"system", "developer"} {
		got, id := h.say("/v1/chat/completions", body("", `{"role":"`+role+`","content":"Be kind."},`+history))
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		// Messages from the request are distinct from messages that were sent here.
		f, err := h.gw.Feed(t.Context(), admin, id)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Page(t.Context(), "", 10)
		f.Release()
		if err != nil {
			t.Fatal(err)
		}
		var sources []string
		for _, m := range p.Messages {
			sources = append(sources, m.Source)
		}
		if d := cmp.Diff([]string{"openai", "openai", "openai", "openai", ""}, sources); d != "" {
			t.Errorf("sources (-want +got):\n%s", d)
		}
	}
}

func TestPictures(t *testing.T) {
	var got []event.Part
	h := newHarness(t, one(agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		got = in.Message.Parts
		return out.Text("seen")
	})), quota.Limits{})
	for path, b := range map[string]string{
		"/v1/messages":         `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`,
		"/v1/chat/completions": `{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}`,
	} {
		h.say(path, body("", `{"role":"user","content":[`+b+`]}`))
		if len(got) != 1 || got[0].Media == nil || got[0].Media.URL != "data:image/png;base64,aGk=" || got[0].Media.Size != 2 {
			t.Errorf("%s: the agent got %+v", path, got)
		}
	}
}

func TestKeys(t *testing.T) {
	h := newHarness(t, one(memoir), quota.Limits{})
	type call struct{ path, rest string }
	anthropic := func(metadata string) call { return call{"/v1/messages", `"metadata":{` + metadata + `},`} }
	openai := func(rest string) call { return call{"/v1/chat/completions", rest} }
	alice, bob := []string{"Leat-Tenant", "t", "Leat-Subject", "alice"}, []string{"Leat-Tenant", "t", "Leat-Subject", "bob"}
	for name, c := range map[string]struct {
		first, second call
		as, then      []string
		same          bool
	}{
		"no key":               {anthropic(``), anthropic(``), alice, alice, false},
		"conversation_id":      {anthropic(`"conversation_id":"k"`), anthropic(`"conversation_id":"k"`), alice, alice, true},
		"conversationId":       {openai(`"metadata":{"conversationId":"k"},`), anthropic(`"conversationId":"k"`), alice, alice, true},
		"user_id":              {anthropic(`"user_id":"k"`), openai(`"user":"k",`), alice, alice, true},
		"user before metadata": {openai(`"user":"k","metadata":{"conversation_id":"l"},`), openai(`"user":"k",`), alice, alice, true},
		"other key":            {anthropic(`"user_id":"k"`), anthropic(`"user_id":"l"`), alice, alice, false},
		"other subject":        {anthropic(`"user_id":"k"`), anthropic(`"user_id":"k"`), alice, bob, false},
		"the admin":            {anthropic(`"user_id":"k"`), anthropic(`"user_id":"k"`), alice, nil, false},
		"longer than an id":    {anthropic(`"user_id":"` + strings.Repeat("k", 200) + `"`), anthropic(`"user_id":"` + strings.Repeat("k", 200) + `"`), alice, alice, true},
		"a name of the system": {anthropic(`"user_id":"$audit"`), anthropic(`"user_id":"$audit"`), nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, one(memoir), quota.Limits{})
			_, first := h.say(c.first.path, body(c.first.rest, `{"role":"user","content":"before"},`+hello), c.as...)
			text, second := h.say(c.second.path, body(c.second.rest, `{"role":"user","content":"again"}`), c.then...)
			if (first == second) != c.same {
				t.Errorf("conversations %q and %q", first, second)
			}
			want := "again"
			if c.same {
				want = "user before|user hello|assistant user before|hello|again"
			}
			if text != want {
				t.Errorf("answered %q, want %q", text, want)
			}
		})
	}
	t.Run("one's own conversation by its id", func(t *testing.T) {
		for _, name := range []string{"mine", "theirs"} {
			owner := gateway.Principal{Tenant: "t", Subject: map[string]string{"mine": "alice", "theirs": "bob"}[name]}
			c, _, err := h.gw.Create(t.Context(), owner, gateway.CreateOptions{ID: name})
			if err != nil {
				t.Fatal(err)
			}
			id := c.ID
			_, got := h.say("/v1/messages", body(`"metadata":{"conversation_id":"`+id+`"},`, hello), alice...)
			if (got == id) != (name == "mine") {
				t.Errorf("%s leads to %q", id, got)
			}
			status := map[string]int{"mine": http.StatusOK, "theirs": http.StatusNotFound}[name]
			h.post(status, nil, "/v1/messages", body("", hello), append([]string{headerConversation, id}, alice...)...)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		b := body(`"metadata":{"user_id":"dead"},`, hello)
		_, first := h.say("/v1/messages", b)
		if _, err := h.gw.Do(t.Context(), admin, first, gateway.Command{Type: gateway.CommandDelete}); err != nil {
			t.Fatal(err)
		}
		text, second := h.say("/v1/messages", b)
		if first == second || text != "hello" {
			t.Errorf("%q after %q: %q", second, first, text)
		}
	})
	t.Run("repeated", func(t *testing.T) {
		_, first := h.say("/v1/messages", body("", hello), "Idempotency-Key", "once")
		_, second := h.say("/v1/messages", body("", hello), "Idempotency-Key", "once")
		if first != second {
			t.Errorf("conversations %q and %q", first, second)
		}
		h.post(http.StatusConflict, nil, "/v1/messages", body("", `{"role":"user","content":"else"}`), "Idempotency-Key", "once")
	})
}

// A user who knows another user's key, and so the derived id, can't create a conversation in its place.
func TestPlantedConversation(t *testing.T) {
	h := newHarness(t, one(memoir), quota.Limits{})
	mallory := gateway.Principal{Tenant: "t", Subject: "mallory"}
	alice := gateway.Principal{Tenant: "t", Subject: "alice"}
	for _, id := range []string{"support", derivedID(alice, "support", 0), derivedID(gateway.Principal{}, "support", 0)} {
		c, _, err := h.gw.Create(t.Context(), mallory, gateway.CreateOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		share := gateway.Command{Type: gateway.CommandShare, Subject: gateway.WholeTenant, Access: gateway.AccessWrite}
		if _, err := h.gw.Do(t.Context(), mallory, c.ID, share); err != nil {
			t.Fatal(err)
		}
	}
	for name, as := range map[string][]string{"alice": {"Leat-Tenant", "t", "Leat-Subject", "alice"}, "admin": nil} {
		_, id := h.say("/v1/messages", body(`"metadata":{"conversation_id":"support"},`, hello), as...)
		c, err := h.gw.Conversation(t.Context(), admin, gateway.ActionRead, id)
		if err != nil || c.Owner == "mallory" {
			t.Errorf("%s speaks in %q of %q (%v)", name, id, c.Owner, err)
		}
	}
}

func TestRefused(t *testing.T) {
	h := newHarness(t, one(echo), quota.Limits{})
	both := []string{"/v1/messages", "/v1/chat/completions"}
	for name, c := range map[string]struct {
		paths           []string
		body            string
		status          int
		kind, code, say string
	}{
		"unknown model":     {both, `{"model":"gpt","messages":[` + hello + `]}`, 404, "not_found_error", "model_not_found", `"gpt"`},
		"the push agent":    {both, `{"model":"` + gateway.PushAgent + `","messages":[` + hello + `]}`, 404, "not_found_error", "model_not_found", "named"},
		"no messages":       {both, body("", ""), 400, "invalid_request_error", "invalid", "last"},
		"prefill":           {both, body("", hello+`,{"role":"assistant","content":"Sure"}`), 400, "invalid_request_error", "invalid", "last"},
		"nothing said":      {both, body("", `{"role":"user","content":""}`), 400, "invalid_request_error", "invalid", "last"},
		"role":              {both, body("", `{"role":"narrator","content":"x"}`), 400, "invalid_request_error", "invalid", "narrator"},
		"tools":             {both, body(`"tools":[{"type":"function","name":"f"}],`, hello), 400, "invalid_request_error", "tools_not_supported", "tools"},
		"functions":         {both[1:], body(`"functions":[{"name":"f"}],`, hello), 400, "invalid_request_error", "tools_not_supported", "tools"},
		"mcp":               {both[:1], body(`"mcp_servers":[{"url":"x"}],`, hello), 400, "invalid_request_error", "tools_not_supported", "tools"},
		"tool result":       {both[:1], body("", `{"role":"user","content":[{"type":"tool_result","content":"x"}]}`), 400, "invalid_request_error", "tools_not_supported", "tools"},
		"tool message":      {both[1:], body("", `{"role":"tool","content":"x"},`+hello), 400, "invalid_request_error", "tools_not_supported", "tools"},
		"n":                 {both[1:], body(`"n":2,`, hello), 400, "invalid_request_error", "invalid", "n:"},
		"logprobs":          {both[1:], body(`"logprobs":true,`, hello), 400, "invalid_request_error", "invalid", "logprobs"},
		"JSON":              {both[1:], body(`"response_format":{"type":"json_object"},`, hello), 400, "invalid_request_error", "invalid", "response_format"},
		"audio":             {both[1:], body(`"modalities":["audio"],`, hello), 400, "invalid_request_error", "invalid", "modalities"},
		"picture elsewhere": {both[:1], body("", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://10.0.0.1/"}}]}`), 400, "invalid_request_error", "invalid", "base64"},
		"picture by URL":    {both[1:], body("", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://10.0.0.1/"}}]}`), 400, "invalid_request_error", "invalid", "data URL"},
		"document":          {both[:1], body("", `{"role":"user","content":[{"type":"document"}]}`), 400, "invalid_request_error", "invalid", "document"},
		"key too long":      {both, body(`"metadata":{"user_id":"`+strings.Repeat("k", maxKey+1)+`"},`, hello), 400, "invalid_request_error", "invalid", "key"},
		"broken JSON":       {both, `{"model":`, 400, "invalid_request_error", "invalid", "JSON"},
		"content":           {both, body("", `{"role":"user","content":7}`), 400, "invalid_request_error", "invalid", "JSON"},
		"__proto__":         {both, body(`"__proto__":{},`, hello), 400, "invalid_request_error", "invalid", "__proto__"},
		"too many pictures": {both[1:], body("", `{"role":"user","content":[`+strings.Repeat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},`, 5)[:5*70-1]+`]}`), 413, "request_too_large", "too_large", "pictures"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range c.paths {
				h.t = t
				wantError(t, h, path, c.body, c.status, c.kind, c.code, c.say)
			}
		})
	}
	h.t = t
	if n := h.stored(); n != 0 {
		t.Errorf("what was refused left %d conversations", n)
	}
}

// wantError expects an error in the format of a path's API.
func wantError(t *testing.T, h *harness, path, body string, status int, kind, code, say string, headers ...string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Code, Message string }
	}
	h.post(status, &e, path, body, headers...)
	if !strings.Contains(e.Error.Message, say) {
		t.Errorf("%s: %q does not say %q", path, e.Error.Message, say)
	}
	if path == "/v1/messages" {
		if e.Type != "error" || e.Error.Type != kind {
			t.Errorf("%s: %+v, want an error of type %s", path, e, kind)
		}
		return
	}
	if e.Error.Code != code || e.Type != "" || !slices.Contains([]string{"invalid_request_error", "rate_limit_error", "server_error"}, e.Error.Type) {
		t.Errorf("%s: %+v, want an error of code %s", path, e, code)
	}
}

// The server's own errors have the API's format too.
func TestServersErrors(t *testing.T) {
	h := newHarness(t, one(echo), quota.Limits{Messages: 1})
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		wantError(t, h, path, askOnce, 401, "authentication_error", "invalid_api_key", "token", "X-Api-Key", "wrong")
		wantError(t, h, path, askOnce, 401, "authentication_error", "invalid_api_key", "token", "Authorization", "Bearer wrong")
		wantError(t, h, path, askOnce, 403, "permission_error", "forbidden", "origin", "Origin", "https://evil.example")
		user := []string{"Leat-Tenant", "t", "Leat-Subject", path}
		h.say(path, askOnce, user...)
		for range 2 {
			wantError(t, h, path, askOnce, 429, "rate_limit_error", "rate_limited", "", user...)
		}
	}
	// Clients retry by themselves, so a refused request must not leave a conversation.
	if n := h.stored(); n != 2 {
		t.Errorf("%d conversations, want 2", n)
	}
	h.say("/v1/messages", askOnce, "X-Api-Key", "", "Authorization", "Bearer "+secret)
}

func TestModels(t *testing.T) {
	h := newHarness(t, map[string]agent.Agent{"eliza": echo, "team/coder": echo}, quota.Limits{})
	get := func(path string, status int, want string, headers ...string) {
		t.Helper()
		res := h.send(http.MethodGet, path, "", headers...)
		got := strings.TrimSpace(strings.ReplaceAll(readAll(t, res), res.Header.Get("X-Request-Id"), "R"))
		if res.StatusCode != status || got != want {
			t.Errorf("%s: %d %s, want %d %s", path, res.StatusCode, got, status, want)
		}
	}
	const (
		eliza = `{"id":"eliza","object":"model","created":0,"owned_by":"leat","type":"model","display_name":"eliza","created_at":"1970-01-01T00:00:00Z"}`
		coder = `{"id":"team/coder","object":"model","created":0,"owned_by":"leat","type":"model","display_name":"team/coder","created_at":"1970-01-01T00:00:00Z"}`
	)
	get("/v1/models", 200, `{"object":"list","data":[`+eliza+`,`+coder+`],"has_more":false,"first_id":"eliza","last_id":"team/coder"}`)
	get("/v1/models/eliza", 200, eliza)
	get("/v1/models/team/coder", 200, coder)
	get("/v1/models/team%2Fcoder", 200, coder)
	get("/v1/models/gpt", 404, `{"error":{"message":"no agent is named \"gpt\"; GET /v1/models lists them","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)
	get("/v1/models/gpt", 404, `{"type":"error","error":{"type":"not_found_error","message":"no agent is named \"gpt\"; GET /v1/models lists them"},"request_id":"R"}`,
		"Anthropic-Version", "2023-06-01")
	// Parts of the APIs that Leat does not support.
	get("/v1/embeddings", 404, `{"error":{"message":"not found","type":"invalid_request_error","param":null,"code":"not_found"}}`)
	get("/v1/chat/completions", 405, `{"error":{"message":"method GET is not allowed here; use POST","type":"invalid_request_error","param":null,"code":"method_not_allowed"}}`)
	get("/v1/messages", 405, `{"type":"error","error":{"type":"invalid_request_error","message":"method GET is not allowed here; use POST"},"request_id":"R"}`)
	get("/v1/messages/count_tokens", 404, `{"type":"error","error":{"type":"not_found_error","message":"not found"},"request_id":"R"}`)
}
