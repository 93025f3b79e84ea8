package whatsapp

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var ann = Person{ID: "15550001", Name: "Ann"}

func newServer(o Options) *Server {
	o.Token, o.Number, o.AppSecret, o.VerifyToken = "token", "100", "secret", "verify"
	return New(o)
}

// post sends JSON and returns the status and the code of the error.
func post(t *testing.T, s *Server, body map[string]any) (status, code int) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := do(t, s, http.MethodPost, "http://fake/v24.0/100/messages", "application/json", bytes.NewReader(raw))
	var refusal struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(answer), &refusal); err != nil {
		t.Fatal(err)
	}
	return status, refusal.Error.Code
}

func do(t *testing.T, s *Server, method, url, contentType string, body io.Reader) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer token")
	r.Header.Set("Content-Type", contentType)
	response, err := s.RoundTrip(r)
	if err != nil {
		return 0, "{}"
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

func say(to, text string) map[string]any {
	return map[string]any{"messaging_product": "whatsapp", "to": to, "type": "text", "text": map[string]any{"body": text}}
}

// The server refuses what the platform refuses.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{PairGap: 6 * time.Second, Rate: 2})
		id := s.Say(ann, "hello")
		with := func(key string, v any) map[string]any {
			m := say(ann.ID, "hi")
			m[key] = v
			return m
		}
		for _, c := range []struct {
			name string
			body map[string]any
			code int
		}{
			{"no product", with("messaging_product", nil), 100},
			{"no recipient", with("to", nil), 100},
			{"group", with("recipient_type", "group"), 100},
			{"empty", say(ann.ID, " \n"), 100},
			{"too long", say(ann.ID, strings.Repeat("👍", 2049)), 100},
			{"unknown type", with("type", "poll"), 100},
			{"media", map[string]any{"messaging_product": "whatsapp", "to": ann.ID, "type": "image", "image": map[string]any{"id": "1"}}, 131009},
			{"unknown message", with("context", map[string]any{"message_id": "wamid.0"}), 131009},
			{"stranger", say("15550002", "hi"), 131047},
			{"receipt for nothing", map[string]any{"messaging_product": "whatsapp", "status": "read", "message_id": "wamid.0"}, 100},
		} {
			time.Sleep(6 * time.Second)
			if status, code := post(t, s, c.body); status != 400 || code != c.code {
				t.Errorf("%s: HTTP %d, code %d, want 400 and %d", c.name, status, code, c.code)
			}
		}
		time.Sleep(6 * time.Second)
		if status, _ := post(t, s, with("context", map[string]any{"message_id": id})); status != 200 {
			t.Errorf("reply: HTTP %d", status)
		}
		if _, code := post(t, s, say(ann.ID, "b")); code != 131056 {
			t.Errorf("too fast: code %d", code)
		}
		if _, code := post(t, s, say(ann.ID, "c")); code != 130429 {
			t.Errorf("too many of the number: code %d", code)
		}
		if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "penalty") {
			t.Errorf("violations: %q", v)
		}
		time.Sleep(24*time.Hour + time.Second)
		if _, code := post(t, s, say(ann.ID, "d")); code != 131047 {
			t.Errorf("outside of the window: code %d", code)
		}
		if m := s.Messages(ann.ID); len(m) != 2 || m[1].ReplyTo != id {
			t.Errorf("%+v", m)
		}
	})
}

// Tokens, objects and paths that don't exist are refused.
func TestAccess(t *testing.T) {
	s := newServer(Options{})
	for path, want := range map[string]int{"/v24.0/100": 200, "/v24.0/101": 400, "/100": 404, "/download/1": 404, "/v24.0/100?access_token=token": 200} {
		if status, answer := do(t, s, http.MethodGet, "http://fake"+path, "", http.NoBody); status != want {
			t.Errorf("%s: HTTP %d, %s", path, status, answer)
		}
	}
	if v := s.Violations(); len(v) != 1 {
		t.Errorf("a token in an address: %q", v)
	}
	s.opt.Token = "other"
	if status, answer := do(t, s, http.MethodGet, "http://fake/v24.0/100", "", http.NoBody); status != 401 || !strings.Contains(answer, "190") {
		t.Errorf("HTTP %d, %s", status, answer)
	}
}

// The typing indicator lasts until a message, or 25 seconds.
func TestTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{})
		id := s.Say(ann, "hello")
		receipt := map[string]any{
			"messaging_product": "whatsapp", "status": "read", "message_id": id, "typing_indicator": map[string]any{"type": "text"},
		}
		if status, _ := post(t, s, receipt); status != 200 || !s.IsTyping(ann.ID) || !s.Messages(ann.ID)[0].IsRead {
			t.Errorf("HTTP %d", status)
		}
		post(t, s, say(ann.ID, "hi"))
		if s.IsTyping(ann.ID) {
			t.Error("the message has arrived")
		}
		post(t, s, receipt)
		time.Sleep(26 * time.Second)
		if s.IsTyping(ann.ID) {
			t.Error("26 seconds are over")
		}
	})
}

// Faults meet the requests that they name.
func TestFaults(t *testing.T) {
	s := newServer(Options{})
	s.Say(ann, "hello")
	s.Fail(Fault{Route: RouteMessages, Skip: 1, Status: 500, Code: 131000})
	s.Fail(Fault{Route: RouteMessages, Before: true})
	s.Fail(Fault{Route: RouteMessages, After: true})
	var got []int
	for range 4 {
		status, _ := post(t, s, say(ann.ID, "hi"))
		got = append(got, status)
	}
	if got[0] != 0 || got[1] != 500 || got[2] != 0 || got[3] != 200 {
		t.Errorf("statuses %v", got)
	}
	if n := len(s.Messages(ann.ID)); n != 3 {
		t.Errorf("%d messages; the request after which the connection was closed has taken effect", n)
	}
}

// Files have a type and a size that the platform accepts.
func TestUpload(t *testing.T) {
	s := newServer(Options{})
	for kind, want := range map[string]int{"image/png": 200, "application/zip": 400, "text/plain": 200} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="f"`}, "Content-Type": {kind}}
		part, err := form.CreatePart(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := form.WriteField("messaging_product", "whatsapp"); err != nil {
			t.Fatal(err)
		}
		if err := form.Close(); err != nil {
			t.Fatal(err)
		}
		if status, answer := do(t, s, http.MethodPost, "http://fake/v24.0/100/media", form.FormDataContentType(), &body); status != want {
			t.Errorf("%s: HTTP %d, %s", kind, status, answer)
		}
	}
}

// A webhook gets events again that it has not confirmed.
func TestRedeliver(t *testing.T) {
	s := newServer(Options{})
	isBroken := true
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, r.URL.Query().Get("hub.challenge"))
		case isBroken:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	if err := s.Subscribe("http://bot/hook", Handler(hook)); err != nil {
		t.Fatal(err)
	}
	s.Say(ann, "grüße/👍")
	isBroken = false
	s.Redeliver()
	s.Redeliver()
	d := s.Deliveries()
	if len(d) != 1 || d[0].Status != 200 || d[0].Attempts != 2 {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(string(d[0].Body), `gr\u00fc\u00dfe\/\ud83d\udc4d`) {
		t.Errorf("%s", d[0].Body)
	}
	if err := s.Subscribe("http://bot/hook", Handler(http.NotFoundHandler())); err == nil {
		t.Error("a webhook without the challenge is accepted")
	}
}
