package matrix_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/chattest/matrix"
)

// object is a JSON object.
type object = map[string]any

// account calls a fake as a bot does.
type account struct {
	t     *testing.T
	fake  *matrix.Server
	token string
}

func open(t *testing.T, o matrix.Options) (*account, matrix.Writer) {
	t.Helper()
	o.Token = "secret"
	fake := matrix.New(o)
	return &account{t, fake, o.Token}, fake.Direct("@ann:matrix.test", "Ann")
}

// call makes a request. It returns the status and the JSON body.
func (a *account) call(method, path string, body any) (int, object) {
	a.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	switch text, ok := body.(string); {
	case ok:
		raw = []byte(text)
	case body == nil:
		raw = nil
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, "http://matrix.test/_matrix/"+path, strings.NewReader(string(raw)))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.fake.RoundTrip(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	var v object
	if json.Unmarshal(content, &v) != nil {
		v = object{"raw": string(content)}
	}
	return response.StatusCode, v
}

func (a *account) send(room, txn string, content any) (int, object) {
	a.t.Helper()
	return a.call(http.MethodPut, "client/v3/rooms/"+url.PathEscape(room)+"/send/m.room.message/"+txn, content)
}

func message(text string) object { return object{"msgtype": "m.text", "body": text} }

func edit(of, text string, isLive bool) object {
	content := message("* " + text)
	content["m.new_content"], content["m.mentions"] = message(text), object{}
	content["m.relates_to"] = object{"rel_type": "m.replace", "event_id": of}
	if isLive {
		content["org.matrix.msc4357.live"] = object{}
	}
	return content
}

// Requests that a homeserver refuses are refused with its errors.
func TestRefusals(t *testing.T) {
	a, ann := open(t, matrix.Options{})
	other := a.fake.Invite("@bob:matrix.test", "Bob")
	room, strange := url.PathEscape(ann.Room), url.PathEscape(other.Room)
	said := a.fake.Say(ann, "hello")
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		"unknown path":      {"GET", "client/v3/nothing", nil, 404, "M_UNRECOGNIZED"},
		"room not joined":   {"PUT", "client/v3/rooms/" + strange + "/send/m.room.message/1", message("a"), 403, "M_FORBIDDEN"},
		"no JSON":           {"PUT", "client/v3/rooms/" + room + "/send/m.room.message/2", "{", 400, "M_NOT_JSON"},
		"no object":         {"PUT", "client/v3/rooms/" + room + "/send/m.room.message/3", "[]", 400, "M_BAD_JSON"},
		"float":             {"PUT", "client/v3/rooms/" + room + "/send/m.room.message/4", `{"a":1.5}`, 400, "M_BAD_JSON"},
		"unknown relation":  {"PUT", "client/v3/rooms/" + room + "/send/m.room.message/5", edit("$nothing", "a", false), 400, "M_UNKNOWN"},
		"large":             {"PUT", "client/v3/rooms/" + room + "/send/m.room.message/6", message(strings.Repeat("a", 65000)), 413, "M_BAD_JSON"},
		"unknown event":     {"GET", "client/v3/rooms/" + room + "/event/$nothing", nil, 404, "M_NOT_FOUND"},
		"message of others": {"PUT", "client/v3/rooms/" + room + "/redact/" + url.PathEscape(said) + "/7", object{}, 403, "M_FORBIDDEN"},
		"unknown room":      {"POST", "client/v3/join/" + url.PathEscape("!no:matrix.test"), object{}, 404, "M_NOT_FOUND"},
		"wrong password":    {"POST", "client/v3/login", object{"type": "m.login.password"}, 403, "M_FORBIDDEN"},
		"wrong since":       {"GET", "client/v3/sync?since=s99999", nil, 400, "M_UNKNOWN"},
		"unknown file":      {"GET", "client/v1/media/download/matrix.test/none", nil, 404, "M_NOT_FOUND"},
		"unknown datum":     {"GET", "client/v3/user/@leat:matrix.test/account_data/a.b", nil, 404, "M_NOT_FOUND"},
		"other's datum":     {"PUT", "client/v3/user/@ann:matrix.test/account_data/a.b", object{}, 403, "M_FORBIDDEN"},
		"typing":            {"PUT", "client/v3/rooms/" + room + "/typing/@leat:matrix.test", object{"typing": true}, 400, "M_BAD_JSON"},
		"no direction":      {"GET", "client/v3/rooms/" + room + "/messages", nil, 400, "M_MISSING_PARAM"},
	} {
		if status, body := a.call(c.method, c.path, c.body); status != c.status || body["errcode"] != c.code {
			t.Errorf("%s: %d %v, want %d %s", name, status, body, c.status, c.code)
		}
	}
	if status, _ := a.send(ann.Room, "8", message(strings.Repeat("a", 60000))); status != 200 {
		t.Errorf("a message of 60,000 bytes: %d", status)
	}
	a.token = "wrong"
	if status, body := a.call("GET", "client/v3/account/whoami", nil); status != 401 || body["errcode"] != "M_UNKNOWN_TOKEN" {
		t.Errorf("%d %v", status, body)
	}
	synapse, ann := open(t, matrix.Options{IsSynapse: true})
	if status, body := synapse.send(ann.Room, "1", message(strings.Repeat("<", 65000))); status != 413 || body["errcode"] != "M_TOO_LARGE" {
		t.Errorf("%d %v", status, body)
	}
}

// A repeated transaction id sends nothing and returns the first event, also if the content differs.
func TestTransactions(t *testing.T) {
	a, ann := open(t, matrix.Options{})
	a.fake.Fail(matrix.Fault{Route: "send", After: true})
	if status, _ := a.send(ann.Room, "1", message("a")); status != 0 {
		t.Errorf("answered with %d", status)
	}
	_, first := a.send(ann.Room, "1", message("a"))
	_, second := a.send(ann.Room, "1", message("b"))
	visible := a.fake.Visible(ann.Room)
	if len(visible) != 1 || visible[0].Text != "a" || first["event_id"] != visible[0].ID || second["event_id"] != visible[0].ID {
		t.Errorf("%v %v %+v", first, second, visible)
	}
}

// Edits have to be related to the original. A redaction leaves them.
func TestEdits(t *testing.T) {
	a, ann := open(t, matrix.Options{})
	live := message("a")
	live["org.matrix.msc4357.live"] = object{}
	_, sent := a.send(ann.Room, "1", live)
	original := sent["event_id"].(string)
	_, sent = a.send(ann.Room, "2", edit(original, "ab", true))
	if m := a.fake.Visible(ann.Room)[0]; m.Text != "ab" || !m.IsLive {
		t.Errorf("%+v", m)
	}
	a.send(ann.Room, "3", edit(original, "abc", false))
	if v := a.fake.Violations(); len(v) != 0 {
		t.Error(v)
	}
	a.send(ann.Room, "4", edit(sent["event_id"].(string), "x", false))
	a.send(ann.Room, "5", edit(original, "y", true))
	bad := edit(original, "z", false)
	delete(bad, "m.mentions")
	a.send(ann.Room, "6", bad)
	want := []string{"which is not an original", "which was finished", "m.mentions"}
	if got := a.fake.Violations(); len(got) != len(want) || !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("%q, want %q", got, want)
	}
	path := "client/v3/rooms/" + url.PathEscape(ann.Room) + "/redact/"
	if status, _ := a.call("PUT", path+url.PathEscape(original)+"/7", object{}); status != 200 {
		t.Error(status)
	}
	_, list := a.call("GET", "client/v1/rooms/"+url.PathEscape(ann.Room)+"/relations/"+url.PathEscape(original)+"/m.replace?limit=2", nil)
	if chunk := list["chunk"].([]any); len(chunk) != 2 || list["next_batch"] == nil {
		t.Errorf("%v", list)
	}
	left := a.fake.Leftovers(ann.Room)
	if len(left) != 4 {
		t.Errorf("%v", left)
	}
	for i, id := range left {
		a.call("PUT", path+url.PathEscape(id)+fmt.Sprint("/e", i), object{})
	}
	if left := a.fake.Leftovers(ann.Room); len(left) != 0 || len(a.fake.Visible(ann.Room)) != 0 {
		t.Errorf("%v", left)
	}
}

// Syncs wait for changes; a long timeline is limited, and its beginning can be read backward.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ann := open(t, matrix.Options{})
		_, first := a.call("GET", "client/v3/sync", nil)
		since := first["next_batch"].(string)
		begin := time.Now()
		_, empty := a.call("GET", "client/v3/sync?timeout=30000&since="+since, nil)
		if time.Since(begin) != 30*time.Second || empty["next_batch"] != since {
			t.Errorf("%v after %v", empty, time.Since(begin))
		}
		go func() {
			time.Sleep(time.Second)
			for i := range 5 {
				a.fake.Say(ann, fmt.Sprint(i))
			}
		}()
		begin = time.Now()
		a.call("GET", "client/v3/sync?timeout=30000&since="+since, nil)
		if time.Since(begin) != time.Second {
			t.Errorf("answered after %v", time.Since(begin))
		}
		synctest.Wait()
		filter := url.QueryEscape(`{"room":{"timeline":{"limit":2}}}`)
		_, changes := a.call("GET", "client/v3/sync?filter="+filter+"&since="+since, nil)
		timeline := changes["rooms"].(object)["join"].(object)[ann.Room].(object)["timeline"].(object)
		if len(timeline["events"].([]any)) != 2 || timeline["limited"] != true {
			t.Errorf("%v", timeline)
		}
		_, page := a.call("GET", "client/v3/rooms/"+url.PathEscape(ann.Room)+"/messages?dir=b&from="+timeline["prev_batch"].(string)+"&to="+since, nil)
		if chunk := page["chunk"].([]any); len(chunk) != 3 || chunk[0].(object)["content"].(object)["body"] != "2" {
			t.Errorf("%v", page)
		}
	})
}

// The rate limit is a token bucket. A request within its penalty is a violation.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ann := open(t, matrix.Options{Rate: 0.2, Burst: 2})
		for i := range 2 {
			if status, _ := a.send(ann.Room, fmt.Sprint(i), message("a")); status != 200 {
				t.Error(status)
			}
		}
		status, body := a.send(ann.Room, "2", message("a"))
		if status != 429 || body["errcode"] != "M_LIMIT_EXCEEDED" || body["retry_after_ms"].(float64) < 5000 {
			t.Errorf("%d %v", status, body)
		}
		time.Sleep(time.Second)
		a.send(ann.Room, "3", message("a"))
		if v := a.fake.Violations(); len(v) != 1 {
			t.Errorf("%v", v)
		}
		time.Sleep(6 * time.Second)
		if status, _ := a.send(ann.Room, "4", message("a")); status != 200 {
			t.Error(status)
		}
	})
}

// Requests fail on demand, and invitations, files and account data work as on a homeserver.
func TestRest(t *testing.T) {
	a, ann := open(t, matrix.Options{MaxUpload: 10})
	a.fake.Fail(matrix.Fault{Route: "join", Skip: 1, Status: 502})
	bob := a.fake.Invite("@bob:matrix.test", "Bob")
	for i, want := range []int{200, 502, 200} {
		if status, _ := a.call("POST", "client/v3/join/"+url.PathEscape(bob.Room), object{}); status != want {
			t.Errorf("join %d: %d", i, status)
		}
	}
	_, joined := a.call("GET", "client/v3/rooms/"+url.PathEscape(bob.Room)+"/joined_members", nil)
	if list := joined["joined"].(object); len(list) != 2 || !a.fake.IsJoined(bob.Room) {
		t.Errorf("%v", joined)
	}
	_, uploaded := a.call("POST", "media/v3/upload?filename=a.txt", "bytes")
	address, _ := uploaded["content_uri"].(string)
	if _, file := a.call("GET", "client/v1/media/download/"+strings.TrimPrefix(address, "mxc://"), nil); file["raw"] != "bytes" {
		t.Errorf("%v", file)
	}
	if status, body := a.call("POST", "media/v3/upload", "more than ten"); status != 413 || body["errcode"] != "M_TOO_LARGE" {
		t.Errorf("%d %v", status, body)
	}
	a.call("PUT", "client/v3/user/@leat:matrix.test/account_data/a.b", object{"c": "d"})
	if _, v := a.call("GET", "client/v3/user/@leat:matrix.test/account_data/a.b", nil); v["c"] != "d" {
		t.Errorf("%v", v)
	}
	a.fake.Kick(ann)
	if status, _ := a.send(ann.Room, "1", message("a")); status != 403 {
		t.Error(status)
	}
	a.fake.Revoke()
	if status, _ := a.call("GET", "client/v3/sync", nil); status != 401 {
		t.Error(status)
	}
}
