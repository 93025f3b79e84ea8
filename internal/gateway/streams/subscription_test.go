package streams

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// hook is a webhook as its receiver gets it.
type hook struct {
	webhookBody
	signature, raw string
}

// receiver is a server whose answers a test chooses, one for each webhook.
func receiver(t *testing.T) (url string, hooks <-chan hook, answers chan<- string) {
	t.Helper()
	received, replies := make(chan hook, 100), make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		h := hook{signature: r.Header.Get("Webhook-Signature"), raw: string(b)}
		if err := errors.Join(err, json.Unmarshal(b, &h.webhookBody)); err != nil {
			t.Error(err)
		}
		received <- h
		answer := <-replies
		if answer == "fail" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(replies) })
	return srv.URL, received, replies
}

// code returns the code of an error.
func code(err error) string {
	var coded *SubscriptionError
	if errors.As(err, &coded) {
		return coded.Code
	}
	return fmt.Sprint(err)
}

// A webhook is repeated until it is accepted, its signature is that of its body, and each append is processed by one wake.
func TestWebhook(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	url, hooks, answers := receiver(t)
	stop := o.run()
	defer stop()
	o.put(admin, "events/old", Creation{Body: []byte("old")})
	plan := Plan{Type: typeWebhook, Pattern: "events/*", URL: url}
	if _, isCreated, err := o.Subscribe(t.Context(), admin, "s", plan, "http://gateway/"); err != nil || !isCreated {
		t.Fatal(isCreated, err)
	}
	if _, isCreated, err := o.Subscribe(t.Context(), admin, "s", plan, "http://gateway/"); err != nil || isCreated {
		t.Fatal(isCreated, err)
	}
	if _, _, err := o.Subscribe(t.Context(), admin, "s", Plan{Type: typeWebhook, Pattern: "*", URL: url}, ""); code(err) != codeExists {
		t.Error(err)
	}
	answers <- "fail"
	answers <- "{}"
	o.put(admin, "events/new", Creation{Body: []byte("a")})
	first, second := <-hooks, <-hooks
	if first.WakeID != second.WakeID || first.raw != second.raw {
		t.Errorf("%s isn't repeated, but %s", first.raw, second.raw)
	}
	id, x, err := o.PublicKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verify(t, second, id, x)
	if second.CallbackURL != "http://gateway/__ds/subscriptions/s/callback" {
		t.Error(second.CallbackURL)
	}
	if len(second.Streams) != 2 || second.Streams[0].Path != "events/new" || !second.Streams[0].Pending || second.Streams[1].Pending {
		t.Errorf("%+v", second.Streams)
	}
	waitFor(t, func() bool {
		sub, err := o.Subscription(t.Context(), admin, "s")
		return err == nil && !sub.IsFailed
	})

	// While the worker has the wake, appends begin no other one.
	o.post(admin, "events/new", "b")
	report := Report{Wake: second.WakeID, Generation: second.Generation, Acks: []Ack{{"events/new", 1}}, IsDone: true}
	for name, c := range map[string]struct {
		token  string
		change func(*Report)
		want   string
	}{
		"another token":      {"x." + second.CallbackToken, func(*Report) {}, CodeInvalidToken},
		"another wake":       {second.CallbackToken, func(r *Report) { r.Wake = "w" }, codeFenced},
		"another generation": {second.CallbackToken, func(r *Report) { r.Generation++ }, codeFenced},
		"beyond the end":     {second.CallbackToken, func(r *Report) { r.Acks = []Ack{{"events/new", 3}} }, CodeOffset},
		"another stream":     {second.CallbackToken, func(r *Report) { r.Acks = []Ack{{"x", 0}} }, CodeOffset},
	} {
		bad := report
		c.change(&bad)
		if _, err := o.Report(t.Context(), c.token, "s", bad); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	answers <- `{"done":true}`
	hasNext, err := o.Report(t.Context(), second.CallbackToken, "s", report)
	if err != nil || !hasNext {
		t.Fatal(hasNext, err)
	}
	if third := <-hooks; third.Generation != second.Generation+1 || !third.Streams[0].Pending {
		t.Errorf("%+v", third)
	}
	waitFor(t, func() bool {
		sub, err := o.Subscription(t.Context(), admin, "s")
		return err == nil && sub.Links[0].Acked == sub.Links[0].Tail
	})
	if _, err := o.Report(t.Context(), second.CallbackToken, "s", report); code(err) != codeFenced {
		t.Errorf("an old wake: %v", err)
	}
	if err := o.Unsubscribe(t.Context(), admin, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Report(t.Context(), second.CallbackToken, "s", report); code(err) != CodeNotFound {
		t.Errorf("a deleted subscription: %v", err)
	}
	o.post(admin, "events/new", "c")
	if _, err := o.Subscription(t.Context(), admin, "s"); code(err) != CodeNotFound {
		t.Error(err)
	}
}

// verify checks the signature of a webhook with the public key.
func verify(t *testing.T, h hook, id, x string) {
	t.Helper()
	public, err := base64.RawURLEncoding.DecodeString(x)
	if err != nil {
		t.Fatal(err)
	}
	var at int64
	rest, _ := strings.CutPrefix(h.signature, "t=")
	n, kid, _ := strings.Cut(rest, ",kid=")
	kid, sum, _ := strings.Cut(kid, ",ed25519=")
	if _, err := fmt.Sscan(n, &at); err != nil {
		t.Fatal(err)
	}
	signature, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || kid != id || !ed25519.Verify(public, fmt.Appendf(nil, "%d.%s", at, h.raw), signature) {
		t.Errorf("%s is not a signature of %s, %v", h.signature, h.raw, err)
	}
}

// A worker that disappears loses its lease, and what it sends later is refused.
func TestLease(t *testing.T) {
	o := open(t, memory.New(), quota.Limits{})
	stop := o.run()
	defer stop()
	o.put(alice, "wake", Creation{ContentType: typeJSON})
	if _, _, err := o.Subscribe(t.Context(), alice, "s", Plan{Type: typePull, Streams: []string{"a", "b"}, Wake: "wake", LeaseMillis: minLease.Milliseconds()}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Claim(t.Context(), alice, "s", "first"); code(err) != codeNothing {
		t.Errorf("nothing is there: %v", err)
	}
	o.put(alice, "a", Creation{Body: []byte("x")})
	waitFor(t, func() bool { return strings.Count(o.text(alice, "wake", 0, 1000), `"wake"`) == 1 })
	first, err := o.Claim(t.Context(), alice, "s", "first")
	if err != nil {
		t.Fatal(err)
	}
	var second Wake
	waitFor(t, func() bool {
		second, err = o.Claim(t.Context(), alice, "s", "second")
		if err != nil && code(err) != codeClaimed {
			t.Fatal(err)
		}
		return err == nil
	})
	report := func(w Wake, done, release bool) error {
		_, err := o.Report(t.Context(), w.Token, "s", Report{Wake: w.ID, Generation: w.Generation, Acks: []Ack{{"a", 1}}, IsDone: done, IsRelease: release})
		return err
	}
	if err := report(first, true, false); code(err) != codeFenced || second.Generation <= first.Generation {
		t.Errorf("the first worker: %v, generation %d after %d", err, second.Generation, first.Generation)
	}
	if err := report(second, true, false); err != nil {
		t.Errorf("the second worker: %v", err)
	}
	if _, err := o.Claim(t.Context(), bob, "s", "third"); code(err) != CodeNotFound {
		t.Errorf("another user: %v", err)
	}
	if err := o.Unlink(t.Context(), alice, "s", "a"); err != nil {
		t.Fatal(err)
	}
	if err := o.Link(t.Context(), alice, "s", []string{"/c/"}); err != nil {
		t.Fatal(err)
	}
	sub, err := o.Subscription(t.Context(), alice, "s")
	if err != nil || len(sub.Links) != 2 || sub.Links[0].Path != "b" || sub.Links[1].Path != "c" {
		t.Errorf("%+v, %v", sub, err)
	}
}

// What was appended when nothing attended to the subscriptions wakes them after the restart.
func TestSubscriptionRestart(t *testing.T) {
	j := memory.New()
	o := open(t, j, quota.Limits{})
	o.put(alice, "wake", Creation{ContentType: typeJSON})
	if _, _, err := o.Subscribe(t.Context(), alice, "s", Plan{Type: typePull, Pattern: "events/**", Wake: "wake"}, ""); err != nil {
		t.Fatal(err)
	}
	o.put(alice, "events/a/b", Creation{Body: []byte("x")})
	o.close()
	o = open(t, j, quota.Limits{})
	stop := o.run()
	defer stop()
	waitFor(t, func() bool { return strings.Count(o.text(alice, "wake", 0, 1000), `"events/a/b"`) == 1 })
	w, err := o.Claim(t.Context(), alice, "s", "worker")
	if err != nil || w.Generation != 1 || len(w.Links) != 1 || !w.Links[0].IsPending {
		t.Errorf("%+v, %v", w, err)
	}
	for name, plan := range map[string]Plan{
		"no type":         {Pattern: "*"},
		"nothing":         {Type: typePull, Wake: "wake"},
		"no wake stream":  {Type: typePull, Pattern: "*"},
		"a short lease":   {Type: typePull, Pattern: "*", Wake: "wake", LeaseMillis: 999},
		"a long lease":    {Type: typePull, Pattern: "*", Wake: "wake", LeaseMillis: 600_001},
		"a slow pattern":  {Type: typePull, Pattern: "**/a/**/b/**", Wake: "wake"},
		"a stream's path": {Type: typePull, Streams: []string{"a\n"}, Wake: "wake"},
	} {
		if _, _, err := o.Subscribe(t.Context(), alice, "bad", plan, ""); code(err) != CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range maxSubscriptions - 1 {
		if _, _, err := o.Subscribe(t.Context(), alice, fmt.Sprint(i), Plan{Type: typePull, Streams: []string{"a"}, Wake: "wake"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := o.Subscribe(t.Context(), alice, "one more", Plan{Type: typePull, Streams: []string{"a"}, Wake: "wake"}, ""); !isRejected(err, gateway.ReasonFull) {
		t.Error(err)
	}
}
