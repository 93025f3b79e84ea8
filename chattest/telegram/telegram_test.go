package telegram_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/chattest/telegram"
)

// reply is the answer to a request.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call makes a request with a JSON body. The error is that of a request that a fault left unanswered.
func call(t *testing.T, fake *telegram.Server, method, body string) (reply, error) {
	t.Helper()
	client := &http.Client{Transport: fake}
	response, err := client.Post("https://api.telegram.org/bot1:test/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r, nil
}

// What the API refuses is refused, with the same texts: bots recognise the reasons by them.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", 4097)
	for _, c := range []struct{ method, body, want string }{
		{"getNothing", `{}`, "Not Found: method not found"},
		{"sendMessage", `{"chat_id": 99, "text": "x"}`, "Bad Request: chat not found"},
		{"sendMessage", `{"chat_id": 7, "text": " \n"}`, "Bad Request: message text is empty"},
		{"sendMessage", `{"chat_id": 7, "text": "` + long + `"}`, "Bad Request: message is too long"},
		{"sendMessage", `{"chat_id": 7, "text": "<b>x", "parse_mode": "HTML"}`, "can't parse entities: Can't find end tag"},
		{"sendMessage", `{"chat_id": 7, "text": "<b>x</i>", "parse_mode": "HTML"}`, "can't parse entities: Unexpected end tag"},
		{"sendMessage", `{"chat_id": 7, "text": "<h1>x</h1>", "parse_mode": "HTML"}`, "can't parse entities: Unsupported start tag"},
		{"sendMessage", `{"chat_id": 7, "text": "x", "entities": [{"type": "bold", "offset": 0, "length": 2}]}`, "can't parse entities"},
		{"sendMessage", `{"chat_id": 7, "text": "👍x", "entities": [{"type": "bold", "offset": 1, "length": 2}]}`, "can't parse entities"},
		{"sendMessage", `{"chat_id": 7, "text": "abc", "entities": [{"type": "bold", "offset": 0, "length": 2}, {"type": "italic", "offset": 1, "length": 2}]}`, "can't parse entities"},
		{"sendMessage", `{"chat_id": 7, "text": "x", "reply_parameters": {"message_id": 55}}`, "message to be replied not found"},
		{"editMessageText", `{"chat_id": 7, "message_id": 1, "text": "x"}`, "message can't be edited"},
		{"editMessageText", `{"chat_id": 7, "message_id": 55, "text": "x"}`, "message to edit not found"},
		{"deleteMessage", `{"chat_id": 7, "message_id": 55}`, "message to delete not found"},
		{"sendMessageDraft", `{"chat_id": -100, "draft_id": 5, "text": "x"}`, "TEXTDRAFT_PEER_INVALID"},
		{"setMessageReaction", `{"chat_id": 7, "message_id": 1, "reaction": [{"type": "emoji", "emoji": "🦖"}]}`, "REACTION_INVALID"},
		{"setWebhook", `{"url": "http://example.com"}`, "An HTTPS URL must be provided"},
		{"setMyCommands", `{"commands": [{"command": "Not valid", "description": "x"}]}`, "BOT_COMMAND_INVALID"},
	} {
		fake := telegram.New(telegram.Options{Token: "1:test"})
		fake.Say(telegram.Private(7, "Ann"), "hello")
		fake.Say(telegram.Group(-100, 7, "Ann"), "hello")
		r, err := call(t, fake, c.method, c.body)
		if err != nil || r.OK || !strings.Contains(r.Description, c.want) {
			t.Errorf("%s %.80s: %+v, %v; want %q", c.method, c.body, r, err, c.want)
		}
		if n := len(fake.Visible(7)); n != 0 {
			t.Errorf("%s: a refused request left %d messages", c.method, n)
		}
	}
}

// A message that is too early gets the time to wait, and everything in the meantime is refused and noticed.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := telegram.New(telegram.Options{Token: "1:test", Gap: 3 * time.Second})
		fake.Say(telegram.Private(7, "Ann"), "hello")
		send := func() reply {
			r, err := call(t, fake, "sendMessage", `{"chat_id": 7, "text": "x"}`)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := send(); !r.OK {
			t.Errorf("%+v", r)
		}
		if r := send(); r.Code != http.StatusTooManyRequests || r.Parameters.RetryAfter < 3 {
			t.Errorf("%+v", r)
		}
		if len(fake.Violations()) != 0 {
			t.Errorf("a first penalty is no violation: %q", fake.Violations())
		}
		if r := send(); r.Code != http.StatusTooManyRequests || len(fake.Violations()) != 1 {
			t.Errorf("within the penalty: %+v, %q", r, fake.Violations())
		}
		time.Sleep(5 * time.Second)
		if r := send(); !r.OK || len(fake.Visible(7)) != 2 {
			t.Errorf("after the penalty: %+v", r)
		}
	})
}

// A draft is shown for 30 s after its last update, and a message replaces it.
func TestDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := telegram.New(telegram.Options{Token: "1:test"})
		fake.Say(telegram.Private(7, "Ann"), "hello")
		draft := func() bool {
			if r, err := call(t, fake, "sendMessageDraft", `{"chat_id": 7, "draft_id": 5, "text": "half"}`); err != nil || !r.OK {
				t.Fatalf("%+v, %v", r, err)
			}
			_, _, ok := fake.Draft(7, 0)
			return ok
		}
		if !draft() {
			t.Error("no draft")
		}
		time.Sleep(31 * time.Second)
		if _, _, ok := fake.Draft(7, 0); ok {
			t.Error("the draft has no end")
		}
		draft()
		if r, err := call(t, fake, "sendMessage", `{"chat_id": 7, "text": "whole"}`); err != nil || !r.OK {
			t.Errorf("%+v, %v", r, err)
		}
		if _, _, ok := fake.Draft(7, 0); ok {
			t.Error("the draft is beside the message")
		}
	})
}

// Faults have the effects that they describe: a request without an answer may or may not have created the message.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault    telegram.Fault
		messages int
		answered bool
	}{
		{telegram.Fault{Before: true}, 0, false},
		{telegram.Fault{After: true}, 1, false},
		{telegram.Fault{Status: http.StatusBadGateway}, 0, true},
		{telegram.Fault{Method: "deleteMessage", Before: true}, 1, true}, // another method
		{telegram.Fault{Skip: 1, Before: true}, 1, true},                 // another request
	} {
		fake := telegram.New(telegram.Options{Token: "1:test"})
		fake.Say(telegram.Private(7, "Ann"), "hello")
		fake.Fail(c.fault)
		_, err := call(t, fake, "sendMessage", `{"chat_id": 7, "text": "x"}`)
		if n := len(fake.Visible(7)); n != c.messages || (err == nil) != c.answered {
			t.Errorf("%+v: %d messages, %v", c.fault, n, err)
		}
	}
}

// A blocked bot, a deleted chat and a group that became a supergroup are refused with what the bot needs to know.
func TestChats(t *testing.T) {
	fake := telegram.New(telegram.Options{Token: "1:test"})
	fake.Say(telegram.Private(7, "Ann"), "hello")
	fake.Say(telegram.Group(-100, 7, "Ann"), "hello")
	fake.Block(7, true)
	if r, _ := call(t, fake, "sendMessage", `{"chat_id": 7, "text": "x"}`); r.Code != http.StatusForbidden {
		t.Errorf("blocked: %+v", r)
	}
	fake.Migrate(-100, -1001)
	if r, _ := call(t, fake, "sendMessage", `{"chat_id": -100, "text": "x"}`); r.Parameters.MigrateTo != -1001 {
		t.Errorf("migrated: %+v", r)
	}
	if r, _ := call(t, fake, "sendMessage", `{"chat_id": -1001, "text": "x"}`); !r.OK {
		t.Errorf("the supergroup: %+v", r)
	}
}

// Updates are repeated until the bot confirms them by the offset of the next poll.
func TestUpdates(t *testing.T) {
	fake := telegram.New(telegram.Options{Token: "1:test"})
	fake.Say(telegram.Private(7, "Ann"), "one")
	fake.Say(telegram.Private(7, "Ann"), "two")
	poll := func(body string) (texts string, last int64) {
		r, err := call(t, fake, "getUpdates", body)
		var updates []struct {
			ID      int64 `json:"update_id"`
			Message struct {
				Text string `json:"text"`
			} `json:"message"`
		}
		if err != nil || json.Unmarshal(r.Result, &updates) != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, u := range updates {
			texts += u.Message.Text + " "
			last = u.ID
		}
		return texts, last
	}
	for range 2 {
		if texts, _ := poll(`{}`); texts != "one two " {
			t.Errorf("%q", texts)
		}
	}
	_, last := poll(`{}`)
	confirm, err := json.Marshal(map[string]int64{"offset": last})
	if err != nil {
		t.Fatal(err)
	}
	if texts, _ := poll(string(confirm)); texts != "two " {
		t.Errorf("after the first was confirmed: %q", texts)
	}
}

// A rich draft is checked as strictly as a text with entities.
func TestRichDraft(t *testing.T) {
	for message, want := range map[string]string{
		`{"html": "<h2>A &amp; B</h2><p>one<br>two</p><ul><li>x</li></ul><hr><table><tr><th>1</th><th>2</th></tr></table>"}`: "",
		`{"html": "<p>open"}`:                                                        "can't parse",
		`{"html": "<script>x</script>"}`:                                             "unsupported start tag script",
		`{"html": "a & b"}`:                                                          "can't parse",
		`{"markdown": "**a**"}`:                                                      "must have html",
		`{"html": "` + strings.Repeat("a", 32_769) + `"}`:                            "too long",
		`{"html": "` + strings.Repeat("<hr>", 501) + `"}`:                            "too many blocks",
		`{"html": "<tr>` + strings.Repeat("<td></td>", 21) + `</tr>"}`:               "too many columns",
		`{"html": "` + strings.Repeat("<b>", 17) + strings.Repeat("</b>", 17) + `"}`: "too many levels",
	} {
		fake := telegram.New(telegram.Options{Token: "1:test"})
		fake.Say(telegram.Writer{Chat: 7, ID: 7, Name: "Ann"}, "hello")
		r, err := call(t, fake, "sendRichMessageDraft", `{"chat_id": 7, "draft_id": 5, "rich_message": `+message+`}`)
		if err != nil || r.OK != (want == "") || !strings.Contains(r.Description, want) {
			t.Errorf("%.60s: %+v, %v", message, r, err)
		}
		if text, id, ok := fake.Draft(7, 0); ok != (want == "") || ok && (id != 5 || text != "A & B\none\ntwo\nx\n12") {
			t.Errorf("%.60s: draft %q", message, text)
		}
	}
}
