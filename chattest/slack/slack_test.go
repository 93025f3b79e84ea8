package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

var (
	ann    = Direct("D7", "U7", "Ann")
	member = Member("C1", "U7", "Ann")
)

func newServer(o Options) *Server {
	o.Token, o.AppToken, o.SigningSecret = "xoxb-test", "xapp-test", "secret"
	return New(o)
}

// post calls a method with a body of JSON and returns the answer.
func post(t *testing.T, s *Server, method string, params map[string]any) map[string]any {
	t.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://slack.test/api/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer xoxb-test")
	if method == "apps.connections.open" {
		r.Header.Set("Authorization", "Bearer xapp-test")
	}
	response, err := s.RoundTrip(r)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	var a map[string]any
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// A stream is started, appended to and stopped; every other order is refused.
func TestStreamStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{})
		first := s.Say(ann, "hello")
		top := s.Say(member, "hello")
		text := func(n int) []any {
			return []any{map[string]any{"type": "markdown_text", "text": strings.Repeat("a", n)}}
		}
		task := func(id, status string) []any {
			return []any{map[string]any{"type": "task_update", "id": id, "title": "bash", "status": status}}
		}
		var ts string
		for _, step := range []struct {
			what, method string
			params       map[string]any
			want         string
		}{
			{"no thread in a direct message", "startStream", map[string]any{"channel": "D7"}, "invalid_arguments"},
			{"unknown thread", "startStream", map[string]any{"channel": "D7", "thread_ts": "1700000000.000001"}, "thread_not_found"},
			{"thread as a number", "startStream", map[string]any{"channel": "D7", "thread_ts": 17.1}, "invalid_thread_ts"},
			{"no recipient", "startStream", map[string]any{"channel": "C1", "thread_ts": top}, "missing_recipient_user_id"},
			{"no team", "startStream", map[string]any{"channel": "C1", "thread_ts": top, "recipient_user_id": "U7"}, "missing_recipient_team_id"},
			{
				"unknown person", "startStream",
				map[string]any{"channel": "C1", "thread_ts": top, "recipient_user_id": "U9", "recipient_team_id": "T1"},
				"user_not_found",
			},
			{
				"both modes", "startStream",
				map[string]any{"channel": "D7", "thread_ts": first, "markdown_text": "a", "chunks": text(1)},
				"cannot_provide_both_markdown_text_and_chunks",
			},
			{"start", "startStream", map[string]any{"channel": "D7", "thread_ts": first, "chunks": text(3)}, ""},
			{"append", "appendStream", map[string]any{"channel": "D7", "chunks": text(2)}, ""},
			{"nothing", "appendStream", map[string]any{"channel": "D7"}, "no_text"},
			{"another mode", "appendStream", map[string]any{"channel": "D7", "markdown_text": "a"}, "streaming_mode_mismatch"},
			{"one too long", "appendStream", map[string]any{"channel": "D7", "chunks": text(12001)}, "msg_too_long"},
			{"all too long", "appendStream", map[string]any{"channel": "D7", "chunks": text(11996)}, "msg_too_long"},
			{"task", "appendStream", map[string]any{"channel": "D7", "chunks": task("1", "in_progress")}, ""},
			{"task without an id", "appendStream", map[string]any{"channel": "D7", "chunks": task("", "complete")}, "invalid_chunks"},
			{"unknown state", "appendStream", map[string]any{"channel": "D7", "chunks": task("1", "done")}, "invalid_chunks"},
			{"edit", "update", map[string]any{"channel": "D7", "text": "a"}, "streaming_state_conflict"},
			{"stop", "stopStream", map[string]any{"channel": "D7", "chunks": task("1", "complete")}, ""},
			{"append after the end", "appendStream", map[string]any{"channel": "D7", "chunks": text(1)}, "message_not_in_streaming_state"},
			{"stop after the end", "stopStream", map[string]any{"channel": "D7"}, "message_not_in_streaming_state"},
			{"edit after the end", "update", map[string]any{"channel": "D7", "markdown_text": "b"}, ""},
		} {
			if ts != "" {
				step.params["ts"] = ts
			}
			a := post(t, s, "chat."+step.method, step.params)
			if got, _ := a["error"].(string); got != step.want {
				t.Errorf("%s: %q, want %q", step.what, got, step.want)
			}
			if step.what == "start" {
				ts = a["ts"].(string)
			}
			if m := s.Messages("D7"); step.what == "stop" && (m[1].Text != "aaaaa" || m[1].Tasks[0].Status != "complete" || m[1].Streaming ||
				m[1].Thread != first) {
				t.Errorf("%+v", m[1])
			}
		}
		if v := s.Violations(); len(v) != 0 {
			t.Error(v)
		}
	})
}

// A stream ends after five minutes, or when a person stops it.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{})
		first := s.Say(ann, "hello")
		for _, stop := range []bool{true, false} {
			ts := post(t, s, "chat.startStream", map[string]any{"channel": "D7", "thread_ts": first, "markdown_text": "a"})["ts"].(string)
			want := "message_not_in_streaming_state"
			if stop {
				s.Stop("D7", ts)
				want = "stopped_by_user"
			}
			for range 5 {
				time.Sleep(59 * time.Second)
				if a := post(t, s, "chat.appendStream", map[string]any{"channel": "D7", "ts": ts, "markdown_text": "b"}); a["ok"] != !stop {
					t.Error(a)
				}
			}
			time.Sleep(5 * time.Second)
			if a := post(t, s, "chat.appendStream", map[string]any{"channel": "D7", "ts": ts, "markdown_text": "b"}); a["error"] != want {
				t.Error(a)
			}
		}
	})
}

// Messages, blocks and metadata have limits.
func TestMessageRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{})
		said := s.Say(ann, "hello")
		button := func(label, value string) []any {
			return []any{map[string]any{"type": "actions", "elements": []any{map[string]any{
				"type": "button", "text": map[string]any{"type": "plain_text", "text": label}, "value": value, "action_id": "a",
			}}}}
		}
		withMetadata := func(payload map[string]any) map[string]any {
			return map[string]any{"channel": "D7", "text": "a", "metadata": map[string]any{"event_type": "x", "event_payload": payload}}
		}
		status := map[string]any{"channel_id": "D7", "thread_ts": "1.1", "status": "thinks"}
		for what, c := range map[string]struct {
			method string
			params map[string]any
			want   string
		}{
			"unknown channel":   {"chat.postMessage", map[string]any{"channel": "D8", "text": "a"}, "channel_not_found"},
			"no text":           {"chat.postMessage", map[string]any{"channel": "D7", "text": " \n"}, "no_text"},
			"both texts":        {"chat.postMessage", map[string]any{"channel": "D7", "text": "a", "markdown_text": "a"}, "markdown_text_conflict"},
			"metadata":          {"chat.postMessage", withMetadata(nil), "invalid_metadata_schema"},
			"large metadata":    {"chat.postMessage", withMetadata(map[string]any{"k": strings.Repeat("a", 16000)}), "metadata_too_large"},
			"long label":        {"chat.postMessage", map[string]any{"channel": "D7", "blocks": button(strings.Repeat("a", 76), "b")}, "invalid_blocks"},
			"long value":        {"chat.postMessage", map[string]any{"channel": "D7", "blocks": button("a", strings.Repeat("a", 2001))}, "invalid_blocks"},
			"message of Ann":    {"chat.update", map[string]any{"channel": "D7", "ts": said, "text": "a"}, "cant_update_message"},
			"unknown message":   {"chat.update", map[string]any{"channel": "D7", "ts": "1700000000.000001", "text": "a"}, "message_not_found"},
			"number as an id":   {"chat.update", map[string]any{"channel": "D7", "ts": 1700000000.000001, "text": "a"}, "invalid_arguments"},
			"deletes Ann's":     {"chat.delete", map[string]any{"channel": "D7", "ts": said}, "cant_delete_message"},
			"status nowhere":    {"assistant.threads.setStatus", status, "invalid_thread_ts"},
			"unknown method":    {"chat.unknown", nil, "unknown_method"},
			"history by JSON":   {"conversations.history", map[string]any{"channel": "D7"}, "channel_not_found"},
			"file without name": {"files.getUploadURLExternal", map[string]any{"length": 1}, "invalid_arguments"},
			"unknown file":      {"files.completeUploadExternal", map[string]any{"files": []any{map[string]any{"id": "F9"}}}, "file_not_found"},
			"socket":            {"apps.connections.open", nil, ""},
		} {
			if got, _ := post(t, s, c.method, c.params)["error"].(string); got != c.want {
				t.Errorf("%s: %q, want %q", what, got, c.want)
			}
		}
		ts := post(t, s, "chat.postMessage", map[string]any{"channel": "D7", "text": "a", "unfurl_links": false, "unfurl_media": false})["ts"].(string)
		if a := post(t, s, "chat.update", map[string]any{"channel": "D7", "ts": ts, "text": strings.Repeat("a", 4001)}); a["error"] != "msg_too_long" {
			t.Error(a)
		}
		if m := s.Visible("D7"); len(m) != 1 || m[0].Unfurls || m[0].TS != ts {
			t.Errorf("%+v", m)
		}
		s.Kick("D7", true)
		if a := post(t, s, "chat.postMessage", map[string]any{"channel": "D7", "text": "a"}); a["error"] != "not_in_channel" {
			t.Error(a)
		}
	})
}

// Requests that are too early get a 429, and those during a penalty are violations.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{Gap: time.Second, Tiers: true})
		s.Say(ann, "hello")
		send := func() map[string]any {
			return post(t, s, "chat.postMessage", map[string]any{"channel": "D7", "text": "a"})
		}
		ts := send()["ts"]
		if a := send(); a["error"] != "ratelimited" {
			t.Error(a)
		}
		send()
		if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "penalty") {
			t.Error(v)
		}
		time.Sleep(3 * time.Second)
		refused := 0
		for i := range 60 {
			a := post(t, s, "chat.update", map[string]any{"channel": "D7", "ts": ts, "text": fmt.Sprint(i)})
			if a["ok"] != true {
				refused++
			}
		}
		if refused != 10 {
			t.Error(refused)
		}
		s.Fail(Fault{Method: "chat.delete", Before: true})
		s.Fail(Fault{Method: "chat.delete", Error: "internal_error"})
		s.Fail(Fault{Method: "chat.delete", After: true})
		for _, want := range []string{memory.ErrClosed.Error(), "internal_error", memory.ErrClosed.Error(), "message_not_found"} {
			if a := post(t, s, "chat.delete", map[string]any{"channel": "D7", "ts": ts}); a["error"] != want {
				t.Errorf("%v, want %s", a, want)
			}
		}
	})
}

// Envelopes are delivered again if they aren't acknowledged, and on another connection if theirs ends.
func TestSocketMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Options{})
		dial := func() *websocket.Conn {
			address := post(t, s, "apps.connections.open", nil)["url"].(string)
			ws, response, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPClient: &http.Client{Transport: s}})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPClient: &http.Client{Transport: s}}); err == nil ||
				response == nil { //nolint:bodyclose // it is the connection
				t.Error("an address worked twice")
			}
			return ws
		}
		read := func(ws *websocket.Conn) map[string]any {
			_, raw, err := ws.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var frame map[string]any
			if err := json.Unmarshal(raw, &frame); err != nil {
				t.Fatal(err)
			}
			return frame
		}
		ws := dial()
		if f := read(ws); f["type"] != "hello" {
			t.Error(f)
		}
		s.Say(member, "hello "+s.Mention())
		one, two := read(ws), read(ws)
		if one["type"] != "events_api" || two["payload"].(map[string]any)["event"].(map[string]any)["type"] != "app_mention" {
			t.Error(one, two)
		}
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"envelope_id":"`+one["envelope_id"].(string)+`"}`)); err != nil {
			t.Fatal(err)
		}
		again := read(ws)
		if again["envelope_id"] != two["envelope_id"] || again["retry_attempt"] != 1.0 {
			t.Error(again)
		}
		s.Disconnect("refresh_requested")
		if f := read(ws); f["type"] != "disconnect" {
			t.Error(f)
		}
		other := dial()
		if err := ws.CloseNow(); err != nil {
			t.Error(err)
		}
		if f := read(other); f["type"] != "hello" {
			t.Error(f)
		}
		if f := read(other); f["envelope_id"] != two["envelope_id"] {
			t.Error(f)
		}
		if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "acknowledged") {
			t.Error(v)
		}
		s.Drop()
		if _, _, err := other.Read(t.Context()); err == nil {
			t.Error("a dropped connection is open")
		}
		synctest.Wait()
		if n := s.Connections(); n != 0 {
			t.Error(n)
		}
	})
}

// What happened is also available as requests of the Events API.
func TestNextRequest(t *testing.T) {
	s := newServer(Options{})
	s.Say(ann, "hello")
	s.Command(ann, "/new", "")
	var kinds []string
	for r := s.NextRequest("/hook"); r != nil; r = s.NextRequest("/hook") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Header.Get("X-Slack-Signature"), "v0=") || len(body) == 0 {
			t.Errorf("%v %s", r.Header, body)
		}
		kinds = append(kinds, r.Header.Get("Content-Type"))
	}
	if want := []string{"application/json", "application/x-www-form-urlencoded"}; !slices.Equal(kinds, want) {
		t.Error(kinds)
	}
}
