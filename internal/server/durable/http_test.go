package durable

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/feed"
)

func TestOffsets(t *testing.T) {
	for c, want := range map[feed.Cursor]string{"0a1b.7": "0000000000000007_0a1b", "0a1b~9f.123": "0000000000000123_0a1b_9f", "e.0": "0000000000000000_e"} {
		if got := offsetOf(c); got != want {
			t.Errorf("%s: %s, want %s", c, got, want)
		}
		if got, err := cursorOf(want); got != c || err != nil {
			t.Errorf("%s: %s, %v, want %s", want, got, err, c)
		}
	}
	for _, bad := range []string{"", "1", "7_0a1b", "0000000000000007", "0000000000000007_", "0000000000000007_A", "00000000000000007_a", "0000000000000007_a_b_c", "0000000000000007_a/..", "-000000000000007_a"} {
		if _, _, err := parseOffset(bad); server.Describe(err).Status != http.StatusBadRequest {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Cursors never go back, whatever a client sends.
func TestCursor(t *testing.T) {
	at := cursorEpoch.Add(1000 * cursorInterval)
	for _, sent := range []string{"", "999", "x", "-5", "99999999999999999999"} {
		if got := nextCursor(sent, at); got != "1000" {
			t.Errorf("after %q: %s", sent, got)
		}
	}
	for range 100 {
		for _, sent := range []string{"1000", "1234"} {
			got := nextCursor(sent, at)
			if len(got) != 4 || got <= sent || got > "1500" {
				t.Errorf("after %s: %s", sent, got)
			}
		}
	}
	if got := nextCursor("", at.Add(cursorInterval-time.Millisecond)); got != "1000" {
		t.Errorf("%s", got)
	}
}

// No data can begin another event or line.
func TestEventLines(t *testing.T) {
	got := string(appendEvent(nil, "data", []byte(" a\nb\r\nc\rd\n\nevent: x")))
	if want := "event: data\ndata: a\ndata:b\ndata:c\ndata:d\ndata:\ndata:event: x\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Requests that clients have to correct, and those that are never allowed.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	turn := h.answered(admin, "c", "one")
	h.do(request{method: http.MethodPut, path: "s", header: map[string]string{"Content-Type": "text/plain"}})
	text := map[string]string{"Content-Type": "text/plain"}
	with := func(pairs ...string) map[string]string {
		all := map[string]string{"Content-Type": "text/plain"}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		request
		status int
	}{
		"an unknown conversation":      {request{path: "conversations/x"}, 404},
		"an unknown turn":              {request{path: "turns/x"}, 404},
		"an unknown stream":            {request{path: "x"}, 404},
		"two offsets":                  {request{path: "s?offset=-1&offset=now"}, 400},
		"an empty offset":              {request{path: "s?offset="}, 400},
		"live without an offset":       {request{path: "conversations/c?live=sse"}, 400},
		"an unknown way":               {request{path: "conversations/c?offset=-1&live=yes"}, 400},
		"a bad offset":                 {request{path: "turns/" + turn + "?offset=1_2"}, 400},
		"beyond the end":               {request{path: "s?offset=0000000000000001_" + h.tail("s")[17:]}, 400},
		"another stream's offset":      {request{path: "s?offset=0000000000000001_0"}, 410},
		"write to a conversation":      {request{method: http.MethodPost, path: "conversations/c", body: "x", header: text}, 405},
		"create a conversation":        {request{method: http.MethodPut, path: "conversations/new", header: text}, 405},
		"create below a conversation":  {request{method: http.MethodPut, path: "conversations/c/x", header: text}, 405},
		"delete a turn":                {request{method: http.MethodDelete, path: "turns/" + turn}, 405},
		"a reserved path":              {request{method: http.MethodPut, path: "__ds/x", header: text}, 403},
		"append to nothing":            {request{method: http.MethodPost, path: "x", body: "x", header: text}, 404},
		"append nothing":               {request{method: http.MethodPost, path: "s", header: text}, 400},
		"append without a type":        {request{method: http.MethodPost, path: "s", body: "x"}, 400},
		"append another type":          {request{method: http.MethodPost, path: "s", body: "x", header: map[string]string{"Content-Type": "text/html"}}, 409},
		"half a producer":              {request{method: http.MethodPost, path: "s", body: "x", header: with(headerProducerID, "p")}, 400},
		"a producer with a word":       {request{method: http.MethodPost, path: "s", body: "x", header: with(headerProducerID, "p", headerProducerEpoch, "0", headerProducerSeq, "one")}, 400},
		"a producer with a large seq":  {request{method: http.MethodPost, path: "s", body: "x", header: with(headerProducerID, "p", headerProducerEpoch, "0", headerProducerSeq, "9007199254740992")}, 400},
		"a producer without its first": {request{method: http.MethodPost, path: "s", body: "x", header: with(headerProducerID, "p", headerProducerEpoch, "0", headerProducerSeq, "1")}, 409},
		"a lifetime with a zero":       {request{method: http.MethodPut, path: "n", header: with(headerTTL, "01")}, 400},
		"two lifetimes":                {request{method: http.MethodPut, path: "n", header: with(headerTTL, "1", headerExpiresAt, "2040-01-01T00:00:00Z")}, 400},
		"a fork of another server":     {request{method: http.MethodPut, path: "n", header: with(headerForkedFrom, "/elsewhere/s")}, 400},
		"a fork of a conversation":     {request{method: http.MethodPut, path: "n", header: with(headerForkedFrom, "/v1/stream/conversations/c")}, 403},
		"a fork of nothing":            {request{method: http.MethodPut, path: "n", header: with(headerForkedFrom, "/v1/stream/none")}, 404},
		"an offset without a source":   {request{method: http.MethodPut, path: "n", header: with(headerForkOffset, h.tail("s"))}, 400},
		"other properties":             {request{method: http.MethodPut, path: "s", header: map[string]string{"Content-Type": typeJSON}}, 409},
		"broken JSON":                  {request{method: http.MethodPut, path: "n", body: "[", header: map[string]string{"Content-Type": typeJSON}}, 400},
	} {
		res, body := h.do(c.request)
		if res.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
		if res.Header.Get("Cross-Origin-Resource-Policy") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", name, res.Header)
		}
		if c.method == "" && !strings.HasSuffix(strings.TrimSpace(body), ".") {
			t.Errorf("%s: %q is not a sentence", name, body)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/v1/stream/s", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without credentials: %d", res.StatusCode)
	}
}

// Users with the same path have different streams, and get none of another user.
func TestScope(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	text := map[string]string{"Content-Type": "text/plain"}
	for _, subject := range []string{"alice", "bob", ""} {
		res, body := h.do(request{method: http.MethodPut, path: "same/päth", body: "of " + subject, subject: subject, header: text})
		if res.StatusCode != http.StatusCreated || !strings.HasSuffix(res.Header.Get("Location"), "/v1/stream/same/p%C3%A4th") {
			t.Fatalf("%d %s %v", res.StatusCode, body, res.Header)
		}
	}
	if res, _ := h.do(request{method: http.MethodDelete, path: "same/päth", subject: "bob"}); res.StatusCode != http.StatusNoContent {
		t.Errorf("bob deletes his: %d", res.StatusCode)
	}
	for subject, want := range map[string]int{"alice": 200, "bob": 404, "carol": 404, "": 200} {
		res, body := h.do(request{path: "same/päth", subject: subject})
		if res.StatusCode != want || want == 200 && body != "of "+subject {
			t.Errorf("%q: %d %s", subject, res.StatusCode, body)
		}
	}
}

// The end of a stream changes its entity tag, and its path can be used again with other offsets.
func TestClosedAndCreatedAgain(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	text := map[string]string{"Content-Type": "text/plain"}
	h.do(request{method: http.MethodPut, path: "s", body: "a", header: text})
	res, body := h.do(request{path: "s"})
	etag, next := res.Header.Get("ETag"), res.Header.Get(headerNextOffset)
	if body != "a" || res.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%q %v", body, res.Header)
	}
	if res, body := h.do(request{path: "s", header: map[string]string{"If-None-Match": `"x", ` + etag}}); res.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	h.do(request{method: http.MethodPost, path: "s", header: map[string]string{headerClosed: "TRUE"}})
	if res, body := h.do(request{path: "s", header: map[string]string{"If-None-Match": etag}}); res.StatusCode != http.StatusOK || body != "a" || res.Header.Get(headerClosed) != isTrue {
		t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
	}
	if res, body := h.do(request{method: http.MethodPost, path: "s", body: "b", header: text}); res.StatusCode != http.StatusConflict || res.Header.Get(headerClosed) != isTrue || res.Header.Get(headerNextOffset) != next {
		t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
	}
	h.do(request{method: http.MethodDelete, path: "s"})
	h.do(request{method: http.MethodPut, path: "s", body: "z", header: text})
	if res, body := h.do(request{path: "s?offset=" + next}); res.StatusCode != http.StatusGone {
		t.Errorf("an offset of the deleted stream: %d %q", res.StatusCode, body)
	}
}

// Readers of a stream that is deleted get its end, and the reason when they connect again.
func TestDeletedWhileRead(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.do(request{method: http.MethodPut, path: "s", body: "\xff\x00", header: map[string]string{"Content-Type": "image/png"}})
	res := h.open(request{path: "s?offset=-1&live=sse"})
	isDeleted := false
	list := events(t, res, func(e sent) bool {
		if e.name == "control" && !isDeleted {
			isDeleted = true
			h.do(request{method: http.MethodDelete, path: "s"})
		}
		return false
	})
	if list[0] != (sent{"data", "/wA="}) || res.Header.Get(headerEncoding) != "base64" {
		t.Errorf("%v %v", list[0], res.Header)
	}
	if res, _ := h.do(request{path: "s?offset=-1&live=sse"}); res.StatusCode != http.StatusNotFound {
		t.Errorf("%d", res.StatusCode)
	}
}

// Workers have separate tokens, and errors have the protocol's codes.
func TestSubscriptions(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	const one = "__ds/subscriptions/s"
	post := func(path, subject, token, body string, status int, code string) string {
		t.Helper()
		rq := request{method: http.MethodPost, path: path, subject: subject, body: body}
		if token != "" {
			rq.header = map[string]string{"Authorization": "Bearer " + token}
		}
		res, got := h.do(rq)
		if res.StatusCode != status || !strings.Contains(got, code) {
			t.Errorf("%s: %d %s, want %d %s", path, res.StatusCode, got, status, code)
		}
		return got
	}
	h.do(request{method: http.MethodPut, path: "events/a", subject: "alice", header: map[string]string{"Content-Type": "text/plain"}})
	if res, body := h.do(request{method: http.MethodPut, path: one, subject: "alice", body: `{"type":"pull-wake","streams":["events/a"],"wake_stream":"wake"}`}); res.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if res, body := h.do(request{method: http.MethodPut, path: one, subject: "alice", body: `{"type":"webhook","streams":["a"],"webhook":{"url":"http://127.0.0.1:1/"}}`}); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "WEBHOOK_URL_REJECTED") {
		t.Errorf("a user's webhook to this machine: %d %s", res.StatusCode, body)
	}
	post(one+"/claim", "alice", "", `{"worker":"w"}`, 409, "NO_PENDING_WORK")
	h.do(request{method: http.MethodPost, path: "events/a", body: "x", subject: "alice", header: map[string]string{"Content-Type": "text/plain"}})
	var claim claimBody
	if err := json.Unmarshal([]byte(post(one+"/claim", "alice", "", `{"worker":"w"}`, 200, "token")), &claim); err != nil {
		t.Fatal(err)
	}
	post(one+"/claim", "alice", "", `{"worker":"v"}`, 409, `"current_holder":"w"`)
	post(one+"/claim", "bob", "", `{"worker":"v"}`, 404, "SUBSCRIPTION_NOT_FOUND")
	ack, err := json.Marshal(map[string]any{"wake_id": claim.WakeID, "generation": claim.Generation, "done": true, "acks": []any{map[string]string{"stream": "events/a", "offset": claim.Streams[0].Tail}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 40 { // more than an address may present of wrong tokens of users
		post(one+"/ack", "", "x.y", string(ack), 401, "TOKEN_INVALID")
	}
	post(one+"/ack", "", secret, string(ack), 401, "TOKEN_INVALID")
	post("__ds/subscriptions/other/ack", "", claim.Token, string(ack), 401, "TOKEN_INVALID")
	post(one+"/ack", "", claim.Token, strings.Replace(string(ack), claim.Streams[0].Tail, "-1", 1), 409, "INVALID_OFFSET")
	post(one+"/ack", "", claim.Token, string(ack), 200, `{"next_wake":false,"ok":true}`)
	post(one+"/release", "", claim.Token, string(ack), 409, "FENCED")
	res, body := h.do(request{path: "__ds/jwks.json"})
	if res.Header.Get("Content-Type") != "application/jwk-set+json" || !strings.Contains(body, `"kid":"ds_`) {
		t.Errorf("%v %s", res.Header, body)
	}
	if res, _ := h.do(request{method: http.MethodDelete, path: one, subject: "alice"}); res.StatusCode != http.StatusNoContent {
		t.Errorf("%d", res.StatusCode)
	}
}
