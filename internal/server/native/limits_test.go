package native_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

// stopped is an agent whose turns run until they are stopped.

// stopped is an agent whose turns last until they are stopped.
var stopped = script(func(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
	<-ctx.Done()
	return ctx.Err()
})

// limited returns a harness in which a user may have one turn, two viewers, and three messages a minute.
func limited(t *testing.T) (ann *harness, conversation string) {
	t.Helper()
	h := newHarness(t, options{agent: stopped, gateway: func(c *gateway.Config) {
		c.User = quota.Limits{Turns: 1, Viewers: 2, Messages: 3}
	}})
	s, _, err := h.gw.Create(t.Context(), gateway.Principal{Tenant: "t", Subject: "ann"}, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
		// wantRetry checks that an error has a retry delay in the header and in the body.
	}
	return h.as("ann"), s.ID
}

// wantRetry checks that an error says when to try again, in the header and in the body.
func wantRetry(t *testing.T, res *http.Response, reason, header string) {
	t.Helper()
	var body struct {
		Error, Reason string
		Rejected      bool
		RetryAfter    int64
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Retry-After"); res.StatusCode != http.StatusTooManyRequests || got != header {
		t.Errorf("%d with Retry-After %q, want 429 with %q", res.StatusCode, got, header)
	}
	if body.Reason != reason || !body.Rejected || body.Error == "" || body.RetryAfter <= 0 || body.RetryAfter > 20_000 {
		t.Errorf("body %+v, want the reason %s and a time to wait", body, reason)
	}
}

func TestLimits(t *testing.T) {
	h, id := limited(t)
	path := "/api/conversations/" + id
	send := func(key string) *http.Response {
		return h.open(http.MethodPost, path+"/commands", strings.NewReader(`{"type":"send","message":{"text":"hello"}}`), "Idempotency-Key", key)
	}
	if res := send("1"); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	res := send("2")
	wantRetry(t, res, "quota", "5")
	status, b := h.do(http.MethodPost, path+"/commands", `{"type":"send","message":{"text":"hello"}}`, "ack", "Idempotency-Key", "3")
	if status != http.StatusTooManyRequests {
		t.Errorf("%d %s", status, b)
	}
	wantRetry(t, h.open(http.MethodPost, path+"/turns?dialect=eliza-actions", strings.NewReader("")), "quota", "5")
	for range 2 {
		if status, b := h.do(http.MethodPost, path+"/commands", `{"type":"inject","message":{"text":"note"}}`, "ack"); status != http.StatusOK {
			t.Fatalf("%d %s", status, b)
		}
	}
	wantRetry(t, h.open(http.MethodPost, path+"/commands", strings.NewReader(`{"type":"inject","message":{"text":"note"}}`)), "rate_limited", "20")
}

func TestLimitOnViewers(t *testing.T) {
	h, id := limited(t)
	path := "/api/conversations/" + id + "/events"
	first := h.events(id)
	first.next()
	c := h.greeted()
	c.send(`{"type":"subscribe","conversation":%q,"id":"a"}`, id).want("subscribed", "a")
	wantRetry(t, h.open(http.MethodGet, path, nil), "quota", "5")
	other := h.greeted()
	f := other.send(`{"type":"subscribe","conversation":%q,"id":"b"}`, id).want("error", "b")
	if f.Reason != "quota" || !strings.Contains(string(f.raw), `"retryAfter":5000`) {
		t.Errorf("refused with %s", f.raw)
	}
	// A second subscription to the same conversation needs no second slot, and an ended one frees its slot.
	c.send(`{"type":"subscribe","conversation":%q,"id":"c"}`, id).want("subscribed", "c")
	c.send(`{"type":"unsubscribe","conversation":%q}`, id)
	c.send(`{"type":"ping"}`).want("pong", "")
	other.send(`{"type":"subscribe","conversation":%q,"id":"d"}`, id).want("subscribed", "d")
	// A single read needs no slot.
	if status, b := h.do(http.MethodGet, "/api/conversations/"+id+"/transcript", "", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, b)
	}
	// On a socket, refused commands get a "rejected" frame.
	c.send(`{"type":"command","id":"e","conversation":%q,"command":{"type":"send","key":"k","message":{"text":"hello"}}}`, id).want("ack", "e")
	f = c.send(`{"type":"command","id":"f","conversation":%q,"command":{"type":"send","key":"l","message":{"text":"hello"}}}`, id).want("rejected", "f")
	if f.Reason != "quota" || !strings.Contains(string(f.raw), `"retryAfter":5000`) {
		t.Errorf("refused with %s", f.raw)
	}
	// The admin has no limit.
	free := *h
	free.header = http.Header{"Authorization": {"Bearer " + token}}
	for range 3 {
		free.events(id).next()
	}
}
