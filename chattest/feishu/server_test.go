package feishu

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var ann = Private("oc_1", "ou_ann")

// client calls a server with an access token.
type client struct {
	t      *testing.T
	server *Server
	token  string
}

func newClient(t *testing.T, o Options) *client {
	o.AppID, o.AppSecret, o.EncryptKey = "cli_1", "secret", "key"
	c := &client{t: t, server: New(o)}
	_, answer := c.call(http.MethodPost, "/auth/v3/tenant_access_token/internal", map[string]any{"app_id": "cli_1", "app_secret": "secret"})
	c.token, _ = answer["tenant_access_token"].(string)
	return c
}

// call makes a request and returns the code and the answer. The code is -1 without an answer.
func (c *client) call(method, path string, body any) (code int, answer map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://fake/open-apis"+path, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.server.RoundTrip(r)
	if err != nil {
		return -1, nil
	}
	defer response.Body.Close()
	if raw, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	number, _ := answer["code"].(float64)
	return int(number), answer
}

// send sends a message and returns the code and its id.
func (c *client) send(kind, content, uuid string) (code int, id string) {
	c.t.Helper()
	body := map[string]any{"receive_id": "oc_1", "msg_type": kind, "content": content, "uuid": uuid}
	code, answer := c.call(http.MethodPost, "/im/v1/messages?receive_id_type=chat_id", body)
	data, _ := answer["data"].(map[string]any)
	id, _ = data["message_id"].(string)
	return code, id
}

const (
	helloText = `{"text": "hello"}`
	helloCard = `{"schema": "2.0", "config": {"streaming_mode": true}, "body": {"elements": [{"tag": "markdown", "element_id": "md", "content": "hello"}]}}`
)

// The server refuses what the platform refuses.
func TestRefusals(t *testing.T) {
	c := newClient(t, Options{})
	c.server.Say(ann, "hello")
	for _, s := range []struct {
		name, kind, content string
		code                int
	}{
		{"empty", "text", `{"text": " "}`, codeParameter},
		{"no JSON", "text", "hello", codeParameter},
		{"unknown type", "poll", helloText, codeParameter},
		{"long card", "interactive", strings.Replace(helloCard, "hello", strings.Repeat("x", maxCard), 1), codeTooLong},
		{"old card", "interactive", strings.Replace(helloCard, "2.0", "1.0", 1), codeBadCard},
		{"tag", "interactive", strings.Replace(helloCard, "markdown", "marquee", 1), codeBadCard},
		{"entity", "interactive", `{"type": "card", "data": {"card_id": "card_0"}}`, codeBadCard},
		{"image", "image", `{"image_key": "img_0"}`, codeParameter},
		{"text", "text", helloText, 0},
		{"card", "interactive", helloCard, 0},
	} {
		if code, _ := c.send(s.kind, s.content, ""); code != s.code {
			t.Errorf("%s: code %d, want %d", s.name, code, s.code)
		}
	}
	if code, _ := c.send("text", helloText, strings.Repeat("x", 51)); code != codeParameter {
		t.Errorf("a long uuid: code %d", code)
	}
	c.server.Expel("oc_1")
	if code, _ := c.send("text", helloText, ""); code != codeOutside {
		t.Errorf("outside: code %d", code)
	}
	c.token = "t-0"
	if code, _ := c.send("text", helloText, ""); code != codeToken {
		t.Errorf("a wrong token: code %d", code)
	}
}

// A repetition with a uuid is recognised for an hour, and a token expires.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{Rate: 2})
		c.server.Say(ann, "hello")
		_, first := c.send("text", helloText, "u")
		if _, again := c.send("text", helloText, "u"); again != first || first == "" {
			t.Errorf("%q, %q", first, again)
		}
		c.send("text", helloText, "")
		if code, _ := c.send("text", helloText, ""); code != codeChatRate {
			t.Errorf("too fast: code %d", code)
		}
		time.Sleep(time.Hour)
		if _, later := c.send("text", helloText, "u"); later == first {
			t.Error("the uuid is known after an hour")
		}
		time.Sleep(time.Hour + time.Second)
		if code, _ := c.send("text", helloText, ""); code != codeToken {
			t.Errorf("an old token: code %d", code)
		}
	})
}

// Operations on a card have rising numbers, ten a second, and text changes only while the card streams.
func TestCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{})
		c.server.Say(ann, "hello")
		_, answer := c.call(http.MethodPost, "/cardkit/v1/cards", map[string]any{"type": "card_json", "data": helloCard})
		data, _ := answer["data"].(map[string]any)
		id, _ := data["card_id"].(string)
		entity := `{"type": "card", "data": {"card_id": "` + id + `"}}`
		if code, _ := c.send("interactive", entity, ""); code != 0 {
			t.Fatalf("code %d", code)
		}
		if code, _ := c.send("interactive", entity, ""); code != codeBadCard {
			t.Errorf("sent twice: code %d", code)
		}
		content := func(text string, sequence int) int {
			code, _ := c.call(http.MethodPut, "/cardkit/v1/cards/"+id+"/elements/md/content", map[string]any{"content": text, "sequence": sequence})
			return code
		}
		settings := func(isOn string, sequence int) int {
			body := map[string]any{"settings": `{"config": {"streaming_mode": ` + isOn + `}}`, "sequence": sequence}
			code, _ := c.call(http.MethodPatch, "/cardkit/v1/cards/"+id+"/settings", body)
			return code
		}
		if code := content("hello world", 2); code != 0 {
			t.Errorf("code %d", code)
		}
		if code := content("late", 2); code != codeSequence {
			t.Errorf("the same number: code %d", code)
		}
		if m := c.server.Visible("oc_1"); m[0].Text != "hello world" || !m[0].IsStreaming {
			t.Errorf("%+v", m)
		}
		if code := settings("false", 3); code != 0 || c.server.Visible("oc_1")[0].IsStreaming {
			t.Errorf("code %d", code)
		}
		if code := content("closed", 4); code != codeClosed {
			t.Errorf("closed: code %d", code)
		}
		for i := range 10 {
			settings("true", 10+i)
		}
		if code := settings("true", 30); code != codeRate {
			t.Errorf("too fast: code %d", code)
		}
	})
}

// Faults meet the requests that they name, and a penalty is remembered.
func TestFaults(t *testing.T) {
	c := newClient(t, Options{})
	c.server.Say(ann, "hello")
	c.server.Fail(Fault{Route: RouteSend, Skip: 1, Status: 429, Code: codeRate, RetryAfter: time.Minute})
	c.server.Fail(Fault{Route: RouteSend, After: true})
	var codes []int
	for range 3 {
		code, _ := c.send("text", helloText, "")
		codes = append(codes, code)
	}
	if codes[0] != -1 || codes[1] != codeRate || codes[2] != 0 || len(c.server.Visible("oc_1")) != 2 {
		t.Errorf("codes %v", codes)
	}
	if v := c.server.Violations(); len(v) != 1 || !strings.Contains(v[0], "penalty") {
		t.Errorf("%q", v)
	}
}
