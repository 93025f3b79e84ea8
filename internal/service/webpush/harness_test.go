package webpush

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	return &receiver{key, auth}
}

// message is what a browser gets.
type message struct {
	Notice
	path   string
	header http.Header
}

// pushService is a push service on loopback, with browsers that decrypt what they get.
type pushService struct {
	t        *testing.T
	server   *httptest.Server
	messages chan message
	// answer decides about each request, counted from 1; nil accepts all.
	answer func(path string, n int) (status int, header map[string]string)

	mu        sync.Mutex
	receivers map[string]*receiver
	requests  int
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	p := &pushService{t: t, messages: make(chan message, 1000), receivers: map[string]*receiver{}}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// client reaches the push service as example.com, which its certificate names.
func (p *pushService) client() *http.Client {
	transport := p.server.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.server.Listener.Addr().String())
	}
	return &http.Client{Transport: transport}
}

// subscribe returns a new subscription.
func (p *pushService) subscribe(path string) Subscription {
	r := newReceiver(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.receivers[path] = r
	return r.subscription("https://example.com" + path)
}

func (p *pushService) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func (p *pushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	p.requests++
	n, receiver := p.requests, p.receivers[r.URL.Path]
	p.mu.Unlock()
	checkAuthorization(p.t, r.Header.Get("Authorization"))
	m := message{path: r.URL.Path, header: r.Header}
	if err := json.Unmarshal(receiver.decrypt(p.t, body), &m.Notice); err != nil {
		p.t.Error(err)
	}
	status := http.StatusCreated
	if p.answer != nil {
		var header map[string]string
		status, header = p.answer(r.URL.Path, n)
		for k, v := range header {
			w.Header().Set(k, v)
		}
	}
	if status/100 == 2 {
		p.messages <- m
	}
	w.WriteHeader(status)
}

// checkAuthorization verifies a header of RFC 8292 with its own key.
func checkAuthorization(t *testing.T, header string) (claims map[string]any, key string) {
	t.Helper()
	rest, isVAPID := strings.CutPrefix(header, "vapid t=")
	token, key, hasKey := strings.Cut(rest, ", k=")
	parts := strings.Split(token, ".")
	if !isVAPID || !hasKey || len(parts) != 3 {
		t.Errorf("Authorization: %q", header)
		return nil, ""
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), decode(t, key))
	if err != nil {
		t.Error(err)
		return nil, ""
	}
	digest, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), decode(t, parts[2])
	if !ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	if err := json.Unmarshal(decode(t, parts[1]), &claims); err != nil {
		t.Error(err)
	}
	expires := time.Unix(int64(claims["exp"].(float64)), 0)
	if claims["aud"] != "https://example.com" || !strings.HasPrefix(claims["sub"].(string), "https://") || time.Until(expires) > 24*time.Hour || time.Until(expires) <= 0 {
		t.Errorf("claims %v", claims)
	}
	return claims, key
}

// newService starts a service whose retries come at once.
func newService(t *testing.T, j journal.Journal, p *pushService) *Service {
	t.Helper()
	if j == nil {
		j = memory.New()
	}
	s, err := Open(t.Context(), Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	s.client = p.client()
	s.schedule = schedule{retry.Schedule{Initial: time.Millisecond, Max: time.Millisecond}, time.Minute}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *Service) mustSubscribe(t *testing.T, subject string, sub Subscription) {
	t.Helper()
	if err := s.Subscribe(t.Context(), "acme", subject, sub); err != nil {
		t.Fatal(err)
	}
}

// next waits for the next message.
func (p *pushService) next() message {
	p.t.Helper()
	select {
	case m := <-p.messages:
		return m
	case <-p.t.Context().Done():
		p.t.Fatal("no message came")
		return message{}
	}
}

// alices is a conversation of alice.
func alices(id string) *journal.Summary {
	return &journal.Summary{ID: id, Tenant: "acme", Owner: "alice", Title: "Title of " + id}
}

func end(turn string, outcome event.Outcome) event.Event {
	return event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: outcome}}
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, isMet func() bool) {
	t.Helper()
	for !isMet() {
		if err := t.Context().Err(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(time.Millisecond)
	}
}
