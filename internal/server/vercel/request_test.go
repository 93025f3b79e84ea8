package vercel

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
)

// Two users who choose the same id have two chats, and neither sees anything of the other.
func TestChatsAreTheirs(t *testing.T) {
	h := newHarness(t, asking, quota.Limits{})
	stream := h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat?sdk=7", question("same", "m1", "of alice"))
	turn := between(t, stream, `"messageId":"`, `"`)
	h.Ask(http.StatusNoContent, "bob", http.MethodGet, "/api/chat/same/stream", "")
	h.Ask(http.StatusNotFound, "bob", http.MethodGet, "/api/chat/same", "")
	h.Ask(http.StatusNotFound, "bob", http.MethodDelete, "/api/chat/same/stream", "")
	answer := `{"id":"same","messages":[{"id":"` + turn + `","role":"assistant","parts":[{"type":"dynamic-tool","toolCallId":"ask","state":"approval-responded","approval":{"id":"ask","approved":true}}]}]}`
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/api/chat", answer)
	other := h.Ask(http.StatusOK, "bob", http.MethodPost, "/api/chat?sdk=7", question("same", "m1", "of bob"))
	if between(t, other, `"messageId":"`, `"`) == turn {
		t.Error("bob gets the answer of alice")
	}
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/api/chat", answer) // now bob has a chat, but not this turn
	if list := h.Ask(http.StatusOK, "bob", http.MethodGet, "/api/chat/same", ""); strings.Contains(list, "alice") || !strings.Contains(list, "of bob") {
		t.Errorf("bob gets %s", list)
	}
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat?sdk=7", answer); !strings.Contains(stream, "the answer is approve") {
		t.Errorf("alice gets %s", stream)
	}
}

// A page that still shows a deleted chat doesn't create it again.
func TestDeletedChat(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	alice := gateway.Principal{Subject: "alice"}
	if _, err := h.Gateway.Do(t.Context(), alice, res.Header.Get("Leat-Conversation"), gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if text := h.Ask(http.StatusGone, "alice", http.MethodPost, "/api/chat", question("c", "m2", "hi")); text != "This chat was deleted; start a new one." {
		t.Errorf("%q", text)
	}
}

// A chat can be one of the user's conversations, for example one that the dashboard shows.
func TestExistingConversation(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	if _, _, err := h.Gateway.Create(t.Context(), gateway.Principal{Subject: "alice"}, gateway.CreateOptions{ID: "mine"}); err != nil {
		t.Fatal(err)
	}
	if id := h.Send("alice", http.MethodPost, "/api/chat", question("mine", "m1", "hi")).Header.Get("Leat-Conversation"); id != "mine" {
		t.Errorf("conversation %s", id)
	}
	if id := h.Send("bob", http.MethodPost, "/api/chat", question("mine", "m1", "hi")).Header.Get("Leat-Conversation"); !strings.HasPrefix(id, "chat-") {
		t.Errorf("conversation %s", id)
	}
}

// A refusal is one sentence of plain text, because pages show the body as it is. Each sentence is pinned: users read it.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	user := func(parts string) string {
		return `{"id":"c","messages":[{"id":"m","role":"user","parts":[` + parts + `]}]}`
	}
	for _, test := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"", "", 400, "The body is not complete JSON."},
		{"", "[]", 400, "The body is not a request of the AI SDK."},
		{"", `{"id":"c","messages":[{"id":"m"`, 400, "The body is not complete JSON."},
		{"", `{"id":"c"}`, 400, "At least one message is needed."},
		{"", `{"id":"c","messages":[]}`, 400, "At least one message is needed."},
		{"", `{"id":"c","messages":{}}`, 400, "The body is not a request of the AI SDK."},
		{"", `{"id":7,"messages":[]}`, 400, `The field "id" must be a string.`},
		{"", `{"messages":[{"role":"user"}]}`, 400, "A chat needs an id."},
		{"", `{"id":"a\u0001","messages":[{"role":"user"}]}`, 400, "Id has a control character."},
		{"", `{"id":"c","trigger":"x","messages":[{"role":"user"}]}`, 400, `Unknown trigger "x"; use submit-message or regenerate-message.`},
		{"", `{"id":"c","messages":[{"role":"system","parts":[]}]}`, 400, `The last message has the role "system"; it must be the user's, or the assistant's with an answer to it.`},
		{"", `{"id":"c","messages":[{"id":"a","role":"assistant","parts":[]}]}`, 404, "The chat has no such answer to continue; send a new message."},
		{"", user(``), 400, "The message is empty."},
		{"", user(`{"type":"file","url":"file:///etc/passwd","mediaType":"text/plain"}`), 400, "A file needs a data, http or https URL."},
		{"", user(`{"type":"source-url"}`), 400, `A part of type "source-url" can't be sent here.`},
		{"", user(`{"type":"text","text":"\ud800"}`), 400, "The JSON has a lone surrogate."},
		{"", user(`{"type":"data-x","data":{"__proto__":1}}`), 400, "The key __proto__ is not allowed."},
		{"?sdk=8", question("c", "m", "hi"), 400, `Unknown version "8" of the SDK; use 5, 6 or 7.`},
		{"?on_disconnect=x", question("c", "m", "hi"), 400, `Unknown value "x" of on_disconnect; use continue or stop.`},
	} {
		res := h.Send("alice", http.MethodPost, "/api/chat"+test.path, test.body)
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if res.StatusCode != test.status || text != test.want {
			t.Errorf("%s: %d %q, want %d %q", test.body, res.StatusCode, text, test.status, test.want)
		}
		if res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: the type is %q", test.body, res.Header.Get("Content-Type"))
		}
	}
	if list := h.Ask(http.StatusNotFound, "alice", http.MethodGet, "/api/chat/c", ""); list != "Not found." {
		t.Errorf("a refused message has created a chat: %s", list)
	}
}

// Of the messages, only the last one counts. The others may be larger than what the gateway takes for one message.
func TestLargeRequest(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	old := `{"id":"old","role":"user","parts":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]},`
	body := `{"messages":[` + strings.Repeat(old, 8) + `{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}],"unknown":{"a":[1]},"id":"c","messageId":null}`
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat", body); !strings.Contains(stream, "re: hi") {
		t.Errorf("got %s", stream)
	}
	if list := h.Ask(http.StatusOK, "alice", http.MethodGet, "/api/chat/c", ""); len(list) > 1000 {
		t.Errorf("the chat has %d bytes", len(list))
	}
	text := h.Ask(http.StatusRequestEntityTooLarge, "alice", http.MethodPost, "/api/chat", question("c", "m2", strings.Repeat("x", 21<<20)))
	if !strings.Contains(text, "at most 20971520") {
		t.Errorf("got %s", text)
	}
	body = `{"id":"c","messages":[` + strings.Repeat(old, 23) + `{"id":"m3","role":"user","parts":[]}]}`
	if text := h.Ask(http.StatusRequestEntityTooLarge, "alice", http.MethodPost, "/api/chat", body); !strings.Contains(text, "larger than 67108864 bytes") {
		t.Errorf("got %s", text)
	}
}

// An id that another message of the chat has is refused, unless the message is the same.
func TestTakenID(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	first := h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat", question("c", "m1", "hi"))
	if again := h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat", question("c", "m1", "hi")); withoutComments(again) != withoutComments(first) {
		t.Errorf("the repetition gets\n%s\nwant\n%s", again, first)
	}
	h.Ask(http.StatusConflict, "alice", http.MethodPost, "/api/chat", question("c", "m1", "something else"))
}

// A message that arrives twice at the same time gets one turn, whose answer both requests get.
func TestTwiceAtOnce(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.Ask(http.StatusOK, "alice", http.MethodPost, "/api/chat", question("c", "m0", "hi"))
	for i := range 20 {
		body := question("c", "twice"+strconv.Itoa(i), "hi")
		streams := make(chan string, 2)
		for range 2 {
			go func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/api/chat", strings.NewReader(body))
				if err != nil {
					streams <- err.Error()
					return
				}
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Set(server.HeaderSubject, "alice")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					streams <- err.Error()
					return
				}
				b, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					b = fmt.Append(b, res.Status, err)
				}
				streams <- withoutComments(string(b))
			}()
		}
		first, second := <-streams, <-streams
		if turn := between(t, first, `"messageId":"`, `"`); !strings.Contains(first, "re: hi") || !strings.Contains(second, turn) {
			t.Fatalf("one request gets\n%s\nand the other one\n%s", first, second)
		}
	}
}

// between returns what is between two texts.
func between(t *testing.T, s, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(s, before)
	result, _, isClosed := strings.Cut(rest, after)
	if !ok || !isClosed {
		t.Fatalf("%q is not in %s", before, s)
	}
	return result
}

func withoutComments(stream string) string { return strings.ReplaceAll(stream, keepAlive, "") }
