package native_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
)

func TestCommands(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	path := "/api/conversations/" + id + "/commands"
	post := func(body string, header ...string) (ack gateway.Ack) {
		t.Helper()
		status, b := h.do(http.MethodPost, path, body, "ack", header...)
		if err := json.Unmarshal(b, &ack); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", body, status, b)
		}
		return ack
	}
	send := `{"type":"send","message":{"text":"hi","parts":[{"kind":"data","data":{"a":1}}],"author":{"id":"u","name":"U"},"source":"test"}}`
	first := post(send, "Idempotency-Key", "k1")
	again := post(send, "Idempotency-Key", "k1")
	if again.Turn != first.Turn || again.Message != first.Message || !again.Repeated || first.Repeated {
		t.Errorf("first %+v, again %+v", first, again)
	}
	h.refused(http.MethodPost, path, `{"type":"send","message":{"text":"ho"}}`, 409, gateway.ReasonConflict, "Idempotency-Key", "k1")
	h.refused(http.MethodPost, path, `{"type":"send","message":{"text":"ho"},"key":"k2"}`, 400, server.ReasonInvalid, "Idempotency-Key", "k3")
	h.ended(id, first.Turn)
	if ack := post(`{"type":"stop","turn":"` + first.Turn + `"}`); !ack.AlreadyEnded {
		t.Errorf("stop of an ended turn: %+v", ack)
	}
	note := post(`{"type":"inject","message":{"text":"note","id":"n1"}}`)
	if note.Message != "n1" {
		t.Errorf("inject: %+v", note)
	}
	post(`{"type":"update","title":"T","metadata":{"a":[1],"b":null}}`)
	if ack := post(`{"type":"truncate","after":"` + first.Message + `"}`); ack.Deleted != 2 {
		t.Errorf("truncate: %+v", ack)
	}
	if got := h.folded(id).text(); got != "user: hi" {
		t.Errorf("text %q", got)
	}
	tools := `{"type":"send","message":{"text":"hi"},"tools":[{"name":"map","description":"shows a map","parameters":{"type":"object"}}]}`
	h.ended(id, post(tools).Turn)
}

// Each invalid request gets an error with the right status and reason, and none of them changes the log.
func TestBadInput(t *testing.T) {
	h := newHarness(t, options{gateway: func(c *gateway.Config) { c.MaxMessage = 10_000 }})
	id := h.create()
	h.ended(id, h.send(id, "hi").Turn)
	before := h.folded(id)
	path := "/api/conversations/" + id + "/commands"
	say := func(text string) string { return `{"type":"send","message":{"text":"` + text + `"}}` }
	for name, c := range map[string]struct {
		path, body string
		status     int
		reason     string
		header     []string
	}{
		"unknown conversation":    {"/api/conversations/nowhere/commands", say("x"), 404, server.ReasonNotFound, nil},
		"system conversation":     {"/api/conversations/$signals/commands", say("x"), 404, server.ReasonNotFound, nil},
		"odd conversation":        {"/api/conversations/a%00b%2f..%2f/commands", say("x"), 404, server.ReasonNotFound, nil},
		"oversize conversation":   {"/api/conversations/" + strings.Repeat("a", 5000) + "/commands", say("x"), 404, server.ReasonNotFound, nil},
		"unknown agent":           {path, `{"type":"send","agent":"nobody","message":{"text":"x"}}`, 400, gateway.ReasonUnknownAgent, nil},
		"invalid tool":            {path, `{"type":"send","message":{"text":"x"},"tools":[{"name":""}]}`, 400, gateway.ReasonInvalid, nil},
		"too many bytes of tools": {path, `{"type":"send","message":{"text":"x"},"tools":[{"name":"a","description":"` + strings.Repeat("x", 256<<10) + `"}]}`, 413, gateway.ReasonTooLarge, nil},
		"unknown type":            {path, `{"type":"dance"}`, 400, gateway.ReasonInvalid, nil},
		"no type":                 {path, `{}`, 400, gateway.ReasonInvalid, nil},
		"nothing":                 {path, ``, 400, gateway.ReasonInvalid, nil},
		"no message":              {path, `{"type":"send"}`, 400, gateway.ReasonInvalid, nil},
		"empty message":           {path, say(""), 400, gateway.ReasonInvalid, nil},
		"unknown role":            {path, `{"type":"inject","message":{"text":"x","role":"root"}}`, 400, gateway.ReasonInvalid, nil},
		"unknown part":            {path, `{"type":"send","message":{"parts":[{"kind":"hologram"}]}}`, 400, gateway.ReasonInvalid, nil},
		"oversize message":        {path, say(strings.Repeat("a", 10_001)), 413, gateway.ReasonTooLarge, nil},
		"oversize body":           {path, say(strings.Repeat("a", native.MaxCommand)), 413, server.ReasonTooLarge, nil},
		"oversize message id":     {path, `{"type":"send","message":{"text":"x","id":"` + strings.Repeat("a", 257) + `"}}`, 400, gateway.ReasonInvalid, nil},
		"oversize key":            {path, say("x"), 400, gateway.ReasonInvalid, []string{"Idempotency-Key", strings.Repeat("k", 257)}},
		"oversize source":         {path, `{"type":"send","message":{"text":"x","source":"` + strings.Repeat("a", 257) + `"}}`, 400, gateway.ReasonInvalid, nil},
		"oversize title":          {path, `{"type":"update","title":"` + strings.Repeat("a", 2000) + `"}`, 413, gateway.ReasonTooLarge, nil},
		"oversize metadata":       {path, `{"type":"update","metadata":{"a":"` + strings.Repeat("a", 70_000) + `"}}`, 413, gateway.ReasonTooLarge, nil},
		"empty update":            {path, `{"type":"update"}`, 400, gateway.ReasonInvalid, nil},
		"NUL in an id":            {path, `{"type":"send","message":{"text":"x","id":"a\u0000b"}}`, 400, gateway.ReasonInvalid, nil},
		"not UTF-8":               {path, say("\xff\xfe"), 400, server.ReasonInvalid, nil},
		"split surrogate":         {path, say(`\ud83d`), 400, server.ReasonInvalid, nil},
		"broken JSON":             {path, `{"type":"send"`, 400, server.ReasonInvalid, nil},
		"two values":              {path, say("x") + say("y"), 400, server.ReasonInvalid, nil},
		"unknown key":             {path, `{"type":"send","mesage":{"text":"x"}}`, 400, server.ReasonInvalid, nil},
		"proto":                   {path, `{"type":"update","metadata":{"__proto__":{"admin":true}}}`, 400, server.ReasonInvalid, nil},
		"wrong token":             {path, say("x"), 401, server.ReasonUnauthorized, []string{"Authorization", "Bearer x"}},
		"no token":                {path, say("x"), 401, server.ReasonUnauthorized, []string{"Authorization", ""}},
		"foreign subject":         {path, say("x"), 404, server.ReasonNotFound, []string{server.HeaderSubject, "mallory"}},
		"foreign origin":          {path, say("x"), 403, server.ReasonForbidden, []string{"Origin", "https://evil.example"}},
		"unknown turn":            {path, `{"type":"stop","turn":"x"}`, 404, gateway.ReasonUnknown, nil},
		"no turn":                 {path, `{"type":"stop"}`, 400, gateway.ReasonInvalid, nil},
		"unknown request":         {path, `{"type":"answer","turn":"x","request":"y"}`, 404, gateway.ReasonUnknown, nil},
		"truncate after nothing":  {path, `{"type":"truncate","after":"x"}`, 404, gateway.ReasonUnknown, nil},
		"events of nothing":       {"/api/conversations/nowhere/events", "", 405, server.ReasonMethod, nil},
		"unknown path below it":   {"/api/conversations/" + id + "/dance", "{}", 404, server.ReasonNotFound, nil},
		"unknown turn's ingest":   {"/api/turns/x/ingest", "", 405, server.ReasonMethod, nil},
		"inject as a stranger":    {path, `{"type":"inject","message":{"text":"x"}}`, 404, server.ReasonNotFound, []string{server.HeaderSubject, "mallory"}},
	} {
		t.Run(name, func(t *testing.T) {
			h.refused(http.MethodPost, c.path, c.body, c.status, c.reason, c.header...)
		})
	}
	after := h.folded(id)
	if after.text() != before.text() || after.cursor != before.cursor {
		t.Errorf("refused requests changed the log: %q at %s, before %q at %s", after.text(), after.cursor, before.text(), before.cursor)
	}
	// Unusual but valid input is stored unchanged.
	odd := `NUL \u0000, 😀 \ud83d\ude00, __proto__, \u2028, \"quotes\" \\ </script>`
	h.ended(id, h.sendRaw(path, say(odd)).Turn)
	want := "NUL \x00, 😀 😀, __proto__, \u2028, \"quotes\" \\ </script>"
	if got := h.folded(id).text(); !strings.HasSuffix(got, "user: "+want+"\nassistant: you said: "+want) {
		t.Errorf("text %q", got)
	}
}

func (h *harness) sendRaw(path, body string) (ack gateway.Ack) {
	h.t.Helper()
	status, b := h.do(http.MethodPost, path, body, "ack")
	if err := json.Unmarshal(b, &ack); err != nil || status != 200 {
		h.t.Fatalf("%d %s", status, b)
	}
	return ack
}

func TestDraining(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	if err := h.gw.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := h.open(http.MethodPost, "/api/conversations/"+id+"/commands", strings.NewReader(`{"type":"send","message":{"text":"x"}}`))
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
}
