package notices_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/notices"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

const (
	token = "a token that is long enough for the tests"
	keys  = `{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`
)

// harness is a server with the routes, and the journal below it.
type harness struct {
	t   *testing.T
	url string
	j   *memory.Journal
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	j := memory.New()
	service, err := webpush.Open(t.Context(), webpush.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	notices.Register(srv, service)
	ts := httptest.NewServer(srv)
	t.Cleanup(ts.Close)
	return &harness{t, ts.URL, j}
}

// call sends a request of a subject; an empty one is the operator.
func (h *harness) call(subject, method, body string) (status int, answer map[string]any) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+"/api/notifications", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if subject != "" {
		req.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		h.t.Fatalf("%s: %v", b, err)
	}
	return res.StatusCode, answer
}

// owners returns the subjects of the stored subscriptions by endpoint.
func (h *harness) owners() map[string]string {
	h.t.Helper()
	all, err := h.j.Keys(context.Background(), webpush.Prefix)
	if err != nil {
		h.t.Fatal(err)
	}
	owners := map[string]string{}
	for _, kv := range all {
		var v struct{ Subject, Endpoint string }
		if err := json.Unmarshal(kv.Value, &v); err != nil {
			h.t.Fatal(err)
		}
		owners[v.Endpoint] = v.Subject
	}
	return owners
}

// Each user subscribes for itself, and ends only its own subscriptions.
func TestUsers(t *testing.T) {
	h := newHarness(t)
	status, answer := h.call("alice", http.MethodGet, "")
	if key, _ := answer["publicKey"].(string); status != http.StatusOK || len(key) != 87 {
		t.Errorf("status %d, %v", status, answer)
	}
	subscription := func(endpoint string) string {
		return `{"endpoint":"` + endpoint + `","expirationTime":null,"keys":` + keys + `}`
	}
	for subject, endpoint := range map[string]string{"alice": "https://push.example.com/1", "": "https://push.example.com/2"} {
		if status, answer := h.call(subject, http.MethodPost, subscription(endpoint)); status != http.StatusOK {
			t.Errorf("%q: status %d, %v", subject, status, answer)
		}
	}
	if status, _ := h.call("bob", http.MethodDelete, `{"endpoint":"https://push.example.com/1"}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if owners := h.owners(); len(owners) != 2 || owners["https://push.example.com/1"] != "alice" {
		t.Errorf("stored: %v", owners)
	}
	if status, _ := h.call("alice", http.MethodDelete, `{"endpoint":"https://push.example.com/1"}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if owners := h.owners(); len(owners) != 1 {
		t.Errorf("stored: %v", owners)
	}
}

// What can't be sent to is refused, and the answer says why.
func TestInvalid(t *testing.T) {
	h := newHarness(t)
	for body, want := range map[string]string{
		`{"endpoint":"http://push.example.com/1","keys":` + keys + `}`:     "https",
		`{"endpoint":"https://192.168.1.1/1","keys":` + keys + `}`:         "private",
		`{"endpoint":"https://push.example.com/1"}`:                        "p256dh",
		`{"endpoint":"https://push.example.com/1","key":{}}`:               "key",
		`{"endpoint":"https://x/` + strings.Repeat("x", 9000) + `"}`:       "large",
		`{"endpoint":"https://push.example.com/1","keys":` + keys + `} {}`: "",
	} {
		status, answer := h.call("alice", http.MethodPost, body)
		message, _ := answer["error"].(string)
		if status/100 != 4 || !strings.Contains(message, want) {
			t.Errorf("%.80s: status %d, %v", body, status, answer)
		}
	}
	if owners := h.owners(); len(owners) != 0 {
		t.Errorf("stored: %v", owners)
	}
}
