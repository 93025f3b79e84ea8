package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

var (
	ann    = Direct("7", "Ann")
	member = Member("50", "7", "Ann")
)

// ask makes a request of the HTTP API and returns the status and the decoded body.
func ask(t *testing.T, s *Server, method, path, body string) (int, http.Header, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://discord.test/api/v10"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "DiscordBot (https://example.com, 1)")
	r.Header.Set("Authorization", "Bot "+s.opt.Token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := s.RoundTrip(r)
	if err != nil {
		return 0, nil, nil
	}
	defer response.Body.Close()
	var v map[string]any
	_ = json.NewDecoder(response.Body).Decode(&v) // an empty body or a list is no object
	return response.StatusCode, response.Header, v
}

// Requests are refused with the codes of the platform.
func TestRefusals(t *testing.T) {
	s := New(Options{Token: "t", NoLimits: true})
	s.Say(member, "hello")
	s.Say(Direct("8", "Bob"), "hello")
	s.Refuse("98", 50007)
	_, _, own := ask(t, s, "POST", "/channels/50/messages", `{"content":"a"}`)
	_, _, v2 := ask(t, s, "POST", "/channels/50/messages", `{"flags":32768,"components":[{"type":10,"content":"a"}]}`)
	foreign := s.Messages("50")[0].ID
	button := func(id string) string { return fmt.Sprintf(`{"type":2,"style":1,"label":"x","custom_id":%q}`, id) }
	twice := `{"type":1,"components":[` + button("1") + "," + button("1") + "]}"
	const display = `[{"type":10,"content":"a"}]`
	long := `{"type":10,"content":"` + strings.Repeat("a", 2001) + `"}`
	many := strings.TrimSuffix(strings.Repeat(`{"type":10,"content":"a"},`, 41), ",")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               float64
		detail             string
	}{
		"unknown channel":     {"POST", "/channels/51/messages", `{"content":"a"}`, 404, 10003, ""},
		"closed direct chat":  {"POST", "/channels/98/messages", `{"content":"a"}`, 403, 50007, ""},
		"no text":             {"POST", "/channels/50/messages", `{"content":" \n"}`, 400, 50006, ""},
		"too long":            {"POST", "/channels/50/messages", `{"content":"` + strings.Repeat("a", 2001) + `"}`, 400, 50035, "BASE_TYPE_MAX_LENGTH"},
		"long nonce":          {"POST", "/channels/50/messages", `{"content":"a","nonce":"` + strings.Repeat("a", 26) + `"}`, 400, 50035, "nonce"},
		"no JSON":             {"POST", "/channels/50/messages", `{`, 400, 50109, ""},
		"reply to nothing":    {"POST", "/channels/50/messages", `{"content":"a","message_reference":{"message_id":"1"}}`, 400, 50035, "REPLIES"},
		"text of V2":          {"POST", "/channels/50/messages", `{"flags":32768,"content":"a","components":` + display + `}`, 400, 50035, "LEGACY"},
		"V2 without the flag": {"POST", "/channels/50/messages", `{"components":[{"type":10,"content":"a"}]}`, 400, 50035, "UNION_TYPE"},
		"empty text display":  {"POST", "/channels/50/messages", `{"flags":32768,"components":[{"type":10,"content":""}]}`, 400, 50035, "BAD_LENGTH"},
		"empty V2":            {"POST", "/channels/50/messages", `{"flags":32768,"components":[]}`, 400, 50006, ""},
		"too many components": {"POST", "/channels/50/messages", `{"flags":32768,"components":[` + many + `]}`, 400, 50035, "MAX_TOTAL"},
		"too much text":       {"POST", "/channels/50/messages", `{"flags":32768,"components":[` + long + `,` + long + `]}`, 400, 50035, "DISPLAYABLE"},
		"button without row":  {"POST", "/channels/50/messages", `{"content":"a","components":[` + button("1") + `]}`, 400, 50035, "UNION_TYPE"},
		"double custom id":    {"POST", "/channels/50/messages", `{"content":"a","components":[` + twice + `]}`, 400, 50035, "DUPLICATED"},
		"edit of another":     {"PATCH", "/channels/50/messages/" + foreign, `{"content":"a"}`, 403, 50005, ""},
		"edit of nothing":     {"PATCH", "/channels/50/messages/1", `{"content":"a"}`, 404, 10008, ""},
		"content for V2":      {"PATCH", fmt.Sprintf("/channels/50/messages/%s", v2["id"]), `{"content":"a"}`, 400, 50035, "LEGACY_FIELDS"},
		"delete of another":   {"DELETE", "/channels/50/messages/" + foreign, "", 403, 50013, ""},
		"unknown route":       {"GET", "/nothing", "", 404, 0, ""},
		"wrong application":   {"PUT", "/applications/1/commands", `[]`, 403, 20012, ""},
		"bad command":         {"PUT", "/applications/1002/commands", `[{"name":"A B","description":"x"}]`, 400, 50035, "REGEX"},
		"unknown webhook":     {"PATCH", "/webhooks/1002/x/messages/@original", `{"content":"a"}`, 401, 50027, ""},
		"allowed":             {"PATCH", fmt.Sprintf("/channels/50/messages/%s", own["id"]), `{"content":"b"}`, 200, 0, ""},
	} {
		status, _, body := ask(t, s, c.method, c.path, c.body)
		code, _ := body["code"].(float64)
		detail, _ := json.Marshal(body["errors"])
		if status != c.status || code != c.code || !strings.Contains(string(detail), c.detail) {
			t.Errorf("%s: %d %v %s", name, status, body, detail)
		}
	}
}

// A request without the token or the form of user agent that the platform requires is refused.
func TestAuthorization(t *testing.T) {
	s := New(Options{Token: "t"})
	for agent, want := range map[string]int{"DiscordBot (x, 1)": 401, "Go-http-client/1.1": 403} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://discord.test/api/v10/users/@me", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		response, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", agent, response.StatusCode)
		}
	}
}

// A message with an enforced nonce is created once within a few minutes.
func TestNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t", NoLimits: true})
		s.Say(ann, "hello")
		s.Fail(Fault{Route: CreateMessage, After: true})
		const body = `{"content":"a","nonce":"n","enforce_nonce":true}`
		for range 3 {
			ask(t, s, "POST", "/channels/97/messages", body)
		}
		if n := len(s.Visible("97")); n != 1 {
			t.Errorf("%d messages", n)
		}
		time.Sleep(nonceLife)
		ask(t, s, "POST", "/channels/97/messages", body)
		ask(t, s, "POST", "/channels/97/messages", `{"content":"a","nonce":"n"}`)
		if n := len(s.Visible("97")); n != 3 {
			t.Errorf("%d messages", n)
		}
	})
}

// Requests beyond a limit are refused until the window ends, and those within the penalty are recorded.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t"})
		s.Say(ann, "hello")
		for i := range 5 {
			status, header, _ := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`)
			if left := header.Get("X-RateLimit-Remaining"); status != 200 || left != fmt.Sprint(4-i) || header.Get("X-RateLimit-Bucket") == "" {
				t.Errorf("%d, %v", status, header)
			}
			time.Sleep(100 * time.Millisecond)
		}
		status, header, body := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`)
		scope := header.Get("X-RateLimit-Scope")
		if status != 429 || body["retry_after"] != 4.501 || body["global"] != false || header.Get("Retry-After") != "5" || scope != "user" {
			t.Errorf("%d, %v, %v", status, body, header)
		}
		if v := s.Violations(); len(v) != 1 {
			t.Errorf("%q", v)
		}
		time.Sleep(4400 * time.Millisecond)
		if status, _, _ := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`); status != 429 || len(s.Violations()) != 2 {
			t.Errorf("%d, %q", status, s.Violations())
		}
		time.Sleep(100 * time.Millisecond)
		if status, _, _ := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`); status != 200 {
			t.Error(status)
		}
		s.Fail(Fault{Status: 429, RetryAfter: 1500 * time.Millisecond, Scope: ScopeGlobal})
		_, header, body = ask(t, s, "POST", "/channels/97/typing", "")
		if body["global"] != true || body["retry_after"] != 1.5 || header.Get("X-RateLimit-Global") != "true" {
			t.Errorf("%v", body)
		}
		if status, _, _ := ask(t, s, "GET", "/users/@me", ""); status != 429 {
			t.Error(status)
		}
		time.Sleep(1500 * time.Millisecond)
		s.Fail(Fault{Route: EditMessage, Status: 429, Code: 20028, RetryAfter: time.Second, Scope: ScopeShared})
		path := "/channels/97/messages/" + s.Visible("97")[0].ID
		if _, _, body := ask(t, s, "PATCH", path, `{"content":"b"}`); body["code"] != 20028.0 {
			t.Errorf("%v", body)
		}
		if status, _, _ := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`); status != 429 {
			t.Errorf("writing elsewhere in the channel: %d", status)
		}
	})
}

// A message that is older than an hour can be edited only a few times.
func TestOldMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t", NoLimits: true})
		s.Say(ann, "hello")
		_, _, m := ask(t, s, "POST", "/channels/97/messages", `{"content":"a"}`)
		time.Sleep(oldAfter + time.Second)
		var body map[string]any
		for i := range oldEdits + 1 {
			_, _, body = ask(t, s, "PATCH", fmt.Sprintf("/channels/97/messages/%s", m["id"]), fmt.Sprintf(`{"content":"b%d"}`, i))
		}
		if body["code"] != 30046.0 {
			t.Errorf("%v", body)
		}
	})
}

// dial opens a connection to the gateway through a pipe.
func dial(t *testing.T, s *Server, query string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://discord.test/gateway/?"+query, &websocket.DialOptions{HTTPClient: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// next reads a frame as "op type seq".
func next(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	_, raw, err := conn.Read(t.Context())
	if err != nil {
		return fmt.Sprint(websocket.CloseStatus(err))
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	seq := 0
	if p.Seq != nil {
		seq = *p.Seq
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %d", p.Op, p.Type, seq))
}

func send(t *testing.T, conn *websocket.Conn, frame string) {
	t.Helper()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

// identify is the first frame of a bot that may read everything.
const identify = `{"op":2,"d":{"token":"t","intents":37376,"properties":{"os":"linux"}}}`

// A session survives its connection: what was missed is sent again.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t"})
		expect := func(conn *websocket.Conn, want ...string) {
			t.Helper()
			for _, w := range want {
				if got := next(t, conn); got != w {
					t.Errorf("%q, want %q", got, w)
				}
			}
		}
		conn := dial(t, s, "v=10&encoding=json")
		expect(conn, "10  0")
		send(t, conn, identify)
		expect(conn, "0 READY 1")
		s.Say(ann, "one")
		expect(conn, "0 MESSAGE_CREATE 2")
		send(t, conn, `{"op":1,"d":2}`)
		expect(conn, "11  0")
		s.Drop()
		_ = conn.CloseNow()
		s.Say(ann, "two")
		s.Invoke(ann, "new")
		conn = dial(t, s, "v=10&encoding=json")
		expect(conn, "10  0")
		send(t, conn, `{"op":6,"d":{"token":"t","session_id":"session1","seq":2}}`)
		expect(conn, "0 MESSAGE_CREATE 3", "0 INTERACTION_CREATE 4", "0 RESUMED 5")
		s.Invalidate(false)
		expect(conn, "9  0")
		if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		conn = dial(t, s, "v=10&encoding=json")
		expect(conn, "10  0")
		send(t, conn, `{"op":6,"d":{"token":"t","session_id":"session1","seq":5}}`)
		expect(conn, "9  0")
		_ = conn.CloseNow()
	})
}

// A bot that breaks the rules of the gateway is disconnected with the code for it.
func TestCloseCodes(t *testing.T) {
	for name, c := range map[string]struct {
		query, frame, want string
		o                  Options
	}{
		"version":        {"v=6&encoding=json", "", "4012", Options{}},
		"token":          {"v=10&encoding=json", strings.Replace(identify, `"t"`, `"x"`, 1), "4004", Options{}},
		"intents":        {"v=10&encoding=json", strings.Replace(identify, "37376", "131072", 1), "4013", Options{}},
		"content":        {"v=10&encoding=json", identify, "4014", Options{NoMessageContent: true}},
		"decode":         {"v=10&encoding=json", "{", "4002", Options{}},
		"opcode":         {"v=10&encoding=json", `{"op":77}`, "4001", Options{}},
		"not identified": {"v=10&encoding=json", `{"op":3,"d":{}}`, "4003", Options{}},
		"no heartbeat":   {"v=10&encoding=json", "", "4009", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.o.Token = "t"
				conn := dial(t, New(c.o), c.query)
				if got := next(t, conn); got != "10  0" {
					t.Error(got)
				}
				if c.frame != "" {
					send(t, conn, c.frame)
				}
				if got := next(t, conn); !strings.Contains(got, c.want) {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// Without the intent for it the content of messages is hidden, apart from those for the bot.
func TestContentIntent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t"})
		conn := dial(t, s, "v=10&encoding=json")
		next(t, conn)
		send(t, conn, strings.Replace(identify, "37376", "4608", 1))
		next(t, conn)
		s.Say(member, "for all")
		s.Say(member, BotMention+" for you")
		s.Say(ann, "direct")
		for _, want := range []string{"", BotMention + " for you", "direct"} {
			_, raw, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var p struct {
				Data struct {
					Content string `json:"content"`
				} `json:"d"`
			}
			if err := json.Unmarshal(raw, &p); err != nil || p.Data.Content != want {
				t.Errorf("%q, want %q (%v)", p.Data.Content, want, err)
			}
		}
		_ = conn.CloseNow()
	})
}

// An interaction has to be answered within three seconds, once.
func TestInteraction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t"})
		late := s.Invoke(ann, "new")
		time.Sleep(3100 * time.Millisecond)
		_, _, body := ask(t, s, "POST", "/interactions/"+late+"/token-"+late+"/callback", `{"type":5}`)
		if body["code"] != 10062.0 || len(s.Violations()) != 1 {
			t.Errorf("%v", body)
		}
		id := s.Invoke(ann, "new")
		for i, want := range []any{nil, 40060.0} {
			if _, _, body := ask(t, s, "POST", "/interactions/"+id+"/token-"+id+"/callback", `{"type":5}`); body["code"] != want {
				t.Errorf("%d: %v", i, body)
			}
		}
		if m := s.Visible("97"); len(m) != 1 || !m[0].Loading {
			t.Fatalf("%+v", m)
		}
		ask(t, s, "PATCH", "/webhooks/1002/token-"+id+"/messages/@original", `{"content":"done"}`)
		if m := s.Visible("97"); len(m) != 1 || m[0].Loading || m[0].Text != "done" {
			t.Errorf("%+v", m)
		}
	})
}

// Commands can be replaced twice a minute, and the names of few are new on a day.
func TestCommandLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "t"})
		put := func(from, count int) int {
			var list []string
			for i := range count {
				list = append(list, fmt.Sprintf(`{"name":"c%d","description":"d","contexts":[0],"options":[{"type":3,"name":"n","description":"d","required":false}]}`, from+i))
			}
			status, _, _ := ask(t, s, "PUT", "/applications/1002/commands", "["+strings.Join(list, ",")+"]")
			return status
		}
		if a, b, c := put(0, 1), put(0, 1), put(0, 1); a != 200 || b != 200 || c != 429 {
			t.Errorf("%d, %d and %d", a, b, c)
		}
		time.Sleep(time.Minute)
		a, b := put(0, 100), put(100, 99)
		time.Sleep(time.Minute)
		if c, d := put(100, 100), put(200, 1); a != 200 || b != 200 || c != 200 || d != 400 {
			t.Errorf("%d, %d, %d and %d", a, b, c, d)
		}
		time.Sleep(24 * time.Hour)
		if status := put(200, 1); status != 200 {
			t.Errorf("%d on the next day", status)
		}
		if status, _, _ := ask(t, s, "GET", "/applications/1002/commands", ""); status != 200 || len(s.Commands()) != 1 {
			t.Errorf("%d, %+v", status, s.Commands())
		}
	})
}
