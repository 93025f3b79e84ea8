package streams

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

func TestProducer(t *testing.T) {
	known := &producerState{Epoch: 2, Seq: 5}
	for name, c := range map[string]struct {
		known *producerState
		p     Producer
		want  verdict
	}{
		"new":                         {nil, Producer{Epoch: 0, Seq: 0}, verdict{Accepted, 0, 0}},
		"new, with a later epoch":     {nil, Producer{Epoch: 7, Seq: 0}, verdict{Accepted, 7, 0}},
		"new, without its first":      {nil, Producer{Epoch: 0, Seq: 1}, verdict{Gap, 0, 0}},
		"next":                        {known, Producer{Epoch: 2, Seq: 6}, verdict{Accepted, 2, 6}},
		"last again":                  {known, Producer{Epoch: 2, Seq: 5}, verdict{duplicate, 2, 5}},
		"first again":                 {known, Producer{Epoch: 2, Seq: 0}, verdict{duplicate, 2, 5}},
		"one is missing":              {known, Producer{Epoch: 2, Seq: 7}, verdict{Gap, 2, 6}},
		"older epoch":                 {known, Producer{Epoch: 1, Seq: 9}, verdict{StaleEpoch, 2, 5}},
		"next epoch":                  {known, Producer{Epoch: 3, Seq: 0}, verdict{Accepted, 3, 0}},
		"next epoch in the middle":    {known, Producer{Epoch: 3, Seq: 1}, verdict{InvalidEpoch, 2, 5}},
		"much later epoch, beginning": {known, Producer{Epoch: 1 << 52, Seq: 0}, verdict{Accepted, 1 << 52, 0}},
	} {
		if got := c.p.judge(c.known); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestPayload(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, want string }{
		"text":                    {"text/plain", "hällo\r\n\x00", "hällo\r\n\x00"},
		"bytes":                   {"application/octet-stream", "\xff\xfe\x00", "\xff\xfe\x00"},
		"invalid text":            {"text/plain; charset=latin1", "h\xe4llo", "h\xe4llo"},
		"a value":                 {"application/json", ` {"a": 1} `, `{"a":1}`},
		"an array":                {"Application/JSON; charset=utf-8", `[{"a":1}, "b,c", [3, 4]]`, `{"a":1},"b,c",[3,4]`},
		"an array in an array":    {"application/json", `[[[1,2]]]`, `[[1,2]]`},
		"numbers stay as written": {"application/json", `[1.0, 123456789012345678901234567890, 1e400]`, `1.0,123456789012345678901234567890,1e400`},
		"keys stay as they are":   {"application/json", `{"b":1,"a":2,"b":3}`, `{"b":1,"a":2,"b":3}`},
		"markup isn't escaped":    {"application/json", `"<b>&\u2028"`, `"<b>&\u2028"`},
		"an empty array":          {"application/json", `[ ]`, ""},
		"nothing":                 {"text/plain", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPayload(c.contentType, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if p == nil {
				if c.want != "" {
					t.Error("nothing is appended")
				}
				return
			}
			e := events(0, []*payload{p})[0]
			b, err := e.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			var stored event.Event
			if err := stored.UnmarshalJSON(b); err != nil {
				t.Fatal(err)
			}
			got, err := content(&stored)
			if err != nil || string(got) != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, body := range []string{"{", `{"a":1} {"b":2}`, "\"\xff\"", "[1,]", " ", "nul"} {
		if _, err := newPayload(typeJSON, []byte(body)); !isRejected(err, gateway.ReasonInvalid) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func isRejected(err error, reason string) bool {
	r, ok := err.(*gateway.Rejection)
	return ok && r.Reason == reason
}

func TestPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body string
		n                 int64
		want              string
		isBeyond          bool
	}{
		"values":      {"application/json", `[1,"two",{"three":3}]`, 2, `1,"two"`, false},
		"all values":  {"application/json", `[1,"two"]`, 2, `1,"two"`, false},
		"too many":    {"application/json", `[1,"two"]`, 3, "", true},
		"bytes":       {"text/plain", "hello", 3, "hel", false},
		"half a rune": {"text/plain", "ä", 1, "\xc3", false},
		"beyond":      {"text/plain", "hello", 6, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPayload(c.contentType, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			first, err := prefix(&events(0, []*payload{p})[0], c.n)
			if err != nil || (first == nil) != c.isBeyond {
				t.Fatalf("%v, %v", first, err)
			}
			if first == nil {
				return
			}
			got, err := content(&events(0, []*payload{first})[0])
			if err != nil || string(got) != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"events/*", "events/a", true},
		{"events/*", "events", false},
		{"events/*", "events/a/b", false},
		{"events/**", "events/a/b", true},
		{"events/**", "events", true},
		{"**", "a/b/c", true},
		{"**/c", "a/b/c", true},
		{"a/**/c/*", "a/c/d", true},
		{"a/**/c/*", "a/b/b/c/d", true},
		{"a/**/c/*", "a/b/b/d", false},
		{"a", "b", false},
		{"*", "", true},
		{"a.*", "aXb", false},
	} {
		if got := glob(c.pattern, c.path); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.path, got)
		}
	}
}

func TestLifetime(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	for name, c := range map[string]struct {
		life lifetime
		want int64
		bad  bool
	}{
		"none":           {lifetime{}, 0, false},
		"sliding":        {lifetime{TTL: 60, HasTTL: true}, 1_060_000, false},
		"none left":      {lifetime{HasTTL: true}, 1_000_000, false},
		"fixed":          {lifetime{ExpiresAt: "1970-01-01T00:30:00Z"}, 1_800_000, false},
		"another zone":   {lifetime{ExpiresAt: "1970-01-01T01:30:00.5+01:00"}, 1_800_500, false},
		"both":           {lifetime{TTL: 1, HasTTL: true, ExpiresAt: "1970-01-01T00:30:00Z"}, 0, true},
		"no date":        {lifetime{ExpiresAt: "tomorrow"}, 0, true},
		"longer than us": {lifetime{TTL: maxTTL + 1, HasTTL: true}, 0, true},
	} {
		got, err := c.life.deadline(at)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if got := lease(1_060_000, 60); got != 1_066_000 {
		t.Errorf("lease until %d", got)
	}
}

// Keys of different users and paths differ, also if their concatenations are the same.
func TestDigest(t *testing.T) {
	seen := map[string][]string{}
	for _, texts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"a", "b", "c"}} {
		d := digest(texts...)
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have the same digest", texts, other)
		}
		seen[d] = texts
	}
}

func TestToken(t *testing.T) {
	k, other := newSigningKey(make([]byte, 32)), newSigningKey([]byte(strings.Repeat("k", 32)))
	token := k.token(&subscription{Tenant: "t", Subject: "s", ID: "i", Generation: 3})
	got, ok := k.open(token)
	if d := cmp.Diff(claims{"t", "s", "i", 3}, got); !ok || d != "" {
		t.Errorf("%v %s", ok, d)
	}
	if _, ok := other.open(token); ok {
		t.Error("another gateway's token is valid")
	}
	for _, bad := range []string{"", ".", token + "x", "x" + token, strings.ToUpper(token), strings.Replace(token, ".", "", 1)} {
		if _, ok := k.open(bad); ok {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: time.Minute, 1000: time.Minute} {
		for range 20 {
			if got := backoff(failures); got < want*8/10 || got > want*12/10 {
				t.Errorf("after %d failures: %v", failures, got)
			}
		}
	}
}

// The plans of users don't reach the gateway's own network.
func TestWebhookAddresses(t *testing.T) {
	admin, user := gateway.Principal{Admin: true}, gateway.Principal{Subject: "u"}
	for _, c := range []struct {
		url string
		by  gateway.Principal
		ok  bool
	}{
		{"https://worker.example/hook", user, true},
		{"http://worker.example/hook", admin, false},
		{"http://127.0.0.1:1/", admin, true},
		{"http://localhost:1/", admin, true},
		{"http://127.0.0.1:1/", user, false},
		{"https://127.0.0.1:1/", admin, false},
		{"https://localhost/", user, false},
		{"http://10.0.0.1/hook", admin, false},
		{"https://10.0.0.1/hook", admin, false},
		{"https://[::1]/", user, false},
		{"https://[fe80::1]/", user, false},
		{"https://169.254.169.254/latest", user, false},
		{"https://user:secret@worker.example/", user, false},
		{"ftp://worker.example/", user, false},
		{"https:///hook", user, false},
		{"", user, false},
	} {
		if err := checkURL(c.url, c.by); (err == nil) != c.ok {
			t.Errorf("%s by %+v: %v", c.url, c.by, err)
		}
	}
}

// What is due is taken once, and the next alarm is known without a look at all of them.
func TestWatch(t *testing.T) {
	a, b := quota.Account{Subject: "a"}, quota.Account{Subject: "b"}
	w := watch{alarms: map[string]int64{"a1": 0, "a2": 100, "b1": 300}, earliest: 100}
	for key, owner := range map[string]quota.Account{"a1": a, "a2": a, "b1": b} {
		add(&w.subscribers, owner, key)
	}
	take := func(at int64, wantWait time.Duration, want ...string) {
		t.Helper()
		list, wait := w.take(at)
		var keys []string
		for _, d := range list {
			keys = append(keys, fmt.Sprint(d.key, len(d.paths)))
		}
		slices.Sort(keys)
		if diff := cmp.Diff(want, keys); diff != "" || wait != wantWait {
			t.Errorf("at %d: %v, %s", at, wait, diff)
		}
	}
	take(90, 10*time.Millisecond)
	add(&w.growth, a, "x")
	add(&w.growth, a, "x")
	add(&w.growth, a, "y")
	take(95, 5*time.Millisecond, "a12", "a22")
	take(100, 200*time.Millisecond, "a20")
	w.alarms["a2"] = 0
	take(110, 190*time.Millisecond)
	add(&w.growth, b, "x")
	take(400, sweepEvery, "b10", "b11")
}
