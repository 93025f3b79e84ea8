package webpush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// All browsers of the owner get a notice, and those of other users get none.
func TestDelivered(t *testing.T) {
	p := newPushService(t)
	s := newService(t, nil, p)
	s.mustSubscribe(t, "alice", p.subscribe("/phone"))
	s.mustSubscribe(t, "alice", p.subscribe("/laptop"))
	s.mustSubscribe(t, "bob", p.subscribe("/bob"))
	if err := s.Subscribe(t.Context(), "other", "alice", p.subscribe("/namesake")); err != nil {
		t.Fatal(err)
	}
	s.Committed(alices("c"), []event.Event{end("t1", event.Completed)})
	got := []message{p.next(), p.next()}
	paths := []string{got[0].path, got[1].path}
	slices.Sort(paths)
	if !slices.Equal(paths, []string{"/laptop", "/phone"}) {
		t.Errorf("sent to %v", paths)
	}
	for _, m := range got {
		if d := cmp.Diff(Notice{Kind: kindEnd, Conversation: "c", Title: "Title of c", Turn: "t1", Outcome: event.Completed}, m.Notice); d != "" {
			t.Error(d)
		}
		h := m.header
		if h.Get("Content-Encoding") != "aes128gcm" || h.Get("Ttl") != "43200" || h.Get("Urgency") != "normal" || len(h.Get("Topic")) != 32 {
			t.Errorf("headers %v", h)
		}
		if _, key := checkAuthorization(t, h.Get("Authorization")); key != s.PublicKey() {
			t.Errorf("signed with %s, want %s", key, s.PublicKey())
		}
	}
	s.Committed(alices("c"), []event.Event{{Type: event.TurnWait, Turn: "t2", Body: &event.Body{Request: &event.Request{ID: "r", Kind: "approval", Prompt: "a secret"}}}})
	for range 2 {
		if m := p.next(); m.Kind != kindRequest || m.Request != "r" || m.header.Get("Urgency") != "high" || m.header.Get("Topic") != got[0].header.Get("Topic") {
			t.Errorf("%+v, %v", m.Notice, m.header)
		}
	}
	s.Close()
	if n := p.count(); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// Turns inside a turn, stopped turns and requests of programs cause no notice.
func TestNotices(t *testing.T) {
	var n nested
	start := func(turn, parent string) event.Event {
		return event.Event{Type: event.TurnStart, Turn: turn, Body: &event.Body{Parent: parent}}
	}
	turns := func(s *journal.Summary, events ...event.Event) (all []string) {
		for _, x := range n.notices(s, events) {
			all = append(all, x.Turn)
		}
		return all
	}
	if got := turns(alices("c"), start("t", ""), start("inner", "t")); got != nil {
		t.Errorf("starts: %v", got)
	}
	got := turns(alices("c"), end("inner", event.Completed), end("t", event.Failed), end("stopped", event.Cancelled), end("u", event.Interrupted))
	if !slices.Equal(got, []string{"t", "u"}) {
		t.Errorf("ends: %v", got)
	}
	unlisted := alices("c")
	unlisted.Unlisted = true
	if got := turns(unlisted, end("t", event.Completed)); got != nil {
		t.Errorf("unlisted: %v", got)
	}
	if len(n.turns) != 0 {
		t.Errorf("turns are left: %v", n.turns)
	}
	long := alices("c")
	long.Title = strings.Repeat("ä", 200)
	if title := n.notices(long, []event.Event{end("t", event.Completed)})[0].Title; title != strings.Repeat("ä", 100)+"…" {
		t.Errorf("title %q", title)
	}
}

// A subscription that the push service doesn't know any more is deleted, also from the journal.
func TestGone(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		j := memory.New()
		p := newPushService(t)
		p.answer = func(path string, _ int) (int, map[string]string) {
			if path == "/gone" {
				return status, nil
			}
			return http.StatusCreated, nil
		}
		s := newService(t, j, p)
		s.mustSubscribe(t, "alice", p.subscribe("/gone"))
		s.mustSubscribe(t, "alice", p.subscribe("/here"))
		s.Committed(alices("c"), []event.Event{end("t", event.Completed)})
		p.next()
		waitFor(t, "the end of the subscription", func() bool { return len(s.store.of(account{"acme", "alice"})) == 1 })
		s.Close()
		if keys, err := j.Keys(t.Context(), Prefix); err != nil || len(keys) != 1 {
			t.Errorf("%d: %d subscriptions are stored, %v", status, len(keys), err)
		}
	}
}

// A message is repeated after failures that may pass, and not after others.
func TestRetries(t *testing.T) {
	p := newPushService(t)
	var mu sync.Mutex
	tries := map[string]int{}
	p.answer = func(path string, _ int) (int, map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		tries[path]++
		switch {
		case path == "/refused":
			return http.StatusForbidden, nil
		case tries[path] == 1:
			return http.StatusTooManyRequests, map[string]string{"Retry-After": "0"}
		case tries[path] == 2:
			return http.StatusBadGateway, nil
		}
		return http.StatusCreated, nil
	}
	s := newService(t, nil, p)
	s.mustSubscribe(t, "alice", p.subscribe("/refused"))
	s.mustSubscribe(t, "alice", p.subscribe("/busy"))
	s.Committed(alices("c"), []event.Event{end("t", event.Completed)})
	if m := p.next(); m.path != "/busy" {
		t.Errorf("delivered to %s", m.path)
	}
	waitFor(t, "the other attempt", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return tries["/refused"] > 0
	})
	waitFor(t, "the end of both", func() bool { return s.messages.Load() == 0 })
	s.Close()
	if tries["/refused"] != 1 || tries["/busy"] != 3 {
		t.Errorf("attempts: %v", tries)
	}
}

// answers is a client without a network.
type answers func() (*http.Response, error)

func (a answers) Do(*http.Request) (*http.Response, error) { return a() }

// Retry-After decides if it is longer than the schedule, and a message is given up after the limit.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		s, err := Open(t.Context(), Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		s.client = answers(func() (*http.Response, error) {
			at = append(at, time.Since(begin))
			header := http.Header{}
			if len(at) == 1 {
				header.Set("Retry-After", "90")
			}
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: header, Body: http.NoBody}, nil
		})
		s.schedule = schedule{retry.Schedule{Initial: time.Second, Max: time.Minute}, 5 * time.Minute}
		r := newReceiver(t)
		s.mustSubscribe(t, "alice", r.subscription("https://example.com/x"))
		s.Start()
		s.Committed(alices("c"), []event.Event{end("t", event.Completed)})
		time.Sleep(time.Hour)
		synctest.Wait()
		s.Close()
		if len(at) < 5 || at[1] != 90*time.Second || at[2] != 92*time.Second || at[len(at)-1] > 5*time.Minute || s.messages.Load() != 0 {
			t.Errorf("attempts at %v", at)
		}
	})
}

// Close doesn't wait for a retry, and ends a request that hangs.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		r := newReceiver(t)
		s.mustSubscribe(t, "alice", r.subscription("https://example.com/x"))
		s.client = hanging{}
		s.Start()
		s.Committed(alices("c"), []event.Event{end("t", event.Completed)})
		synctest.Wait()
		begin := time.Now()
		s.Close()
		if d := time.Since(begin); d != closeLimit {
			t.Errorf("it took %s", d)
		}
	})
}

// hanging is a client that never answers.
type hanging struct{}

func (hanging) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A burst is bounded, and never blocks the writer of a conversation.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		s.client = hanging{}
		r := newReceiver(t)
		s.mustSubscribe(t, "alice", r.subscription("https://example.com/x"))
		shown := 0
		s.Show = func(Notice) { shown++ }
		s.Start()
		for i := range 3 * (maxMessages + maxQueued) {
			s.Committed(alices("c"), []event.Event{end(fmt.Sprint("t", i), event.Completed)})
			synctest.Wait()
		}
		if n := s.messages.Load(); n != maxMessages || shown != 3*(maxMessages+maxQueued) {
			t.Errorf("%d messages wait, %d notices were shown", n, shown)
		}
		s.Close()
	})
}

// Subscriptions and the key outlast a restart.
func TestRestart(t *testing.T) {
	j := memory.New()
	p := newPushService(t)
	s := newService(t, j, p)
	s.mustSubscribe(t, "alice", p.subscribe("/phone"))
	key := s.PublicKey()
	s.Close()
	s = newService(t, j, p)
	if s.PublicKey() != key {
		t.Error("the key has changed")
	}
	s.Committed(alices("c"), []event.Event{end("t", event.Completed)})
	p.next()
}

// A browser belongs to the user who subscribed it last, and only that user can unsubscribe it.
func TestOneUserForEachBrowser(t *testing.T) {
	p := newPushService(t)
	s := newService(t, nil, p)
	sub := p.subscribe("/shared")
	s.mustSubscribe(t, "alice", sub)
	s.mustSubscribe(t, "bob", sub)
	if err := s.Unsubscribe(t.Context(), "acme", "alice", sub.Endpoint); err != nil {
		t.Fatal(err)
	}
	bobs := alices("b")
	bobs.Owner = "bob"
	s.Committed(alices("a"), []event.Event{end("t", event.Completed)})
	s.Committed(bobs, []event.Event{end("t", event.Completed)})
	if m := p.next(); m.Conversation != "b" {
		t.Errorf("%+v", m.Notice)
	}
	if err := s.Unsubscribe(t.Context(), "acme", "bob", sub.Endpoint); err != nil {
		t.Fatal(err)
	}
	s.Committed(bobs, []event.Event{end("u", event.Completed)})
	s.Close()
	if n := p.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// What a purge deletes from the journal gets nothing, without a restart.
func TestPurged(t *testing.T) {
	j := memory.New()
	p := newPushService(t)
	s := newService(t, j, p)
	sub := p.subscribe("/phone")
	s.mustSubscribe(t, "alice", sub)
	if err := j.Append(t.Context(), journal.Batch{Conversation: logID, Keys: []journal.KeyValue{{Key: Prefix + sub.id()}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.store.get(t.Context(), account{"acme", "alice"}, sub.id()); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if ids := s.store.of(account{"acme", "alice"}); len(ids) != 0 {
		t.Errorf("it is still known: %v", ids)
	}
}

// A user has a bounded number of subscriptions; the oldest one makes room.
func TestMaxDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		s, err := Open(t.Context(), Config{Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		r := newReceiver(t)
		at := func(i int) Subscription { return r.subscription(fmt.Sprint("https://example.com/", i)) }
		for i := range maxDevices {
			s.mustSubscribe(t, "alice", at(i))
			time.Sleep(time.Second)
		}
		s.mustSubscribe(t, "alice", at(0)) // renewed
		time.Sleep(time.Second)
		s.mustSubscribe(t, "alice", at(maxDevices))
		ids := s.store.of(account{"acme", "alice"})
		first, second := at(0), at(1)
		if len(ids) != maxDevices || !slices.Contains(ids, first.id()) || slices.Contains(ids, second.id()) {
			t.Errorf("%d subscriptions: %v", len(ids), ids)
		}
		if keys, err := j.Keys(t.Context(), Prefix); err != nil || len(keys) != maxDevices {
			t.Errorf("%d are stored, %v", len(keys), err)
		}
	})
}

// A name that leads to a private address is refused when it is dialed, and not tried again.
func TestPrivateAddress(t *testing.T) {
	s, err := Open(t.Context(), Config{Journal: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := newReceiver(t)
	sub := r.subscription("https://10.0.0.1/x")
	if err := s.Subscribe(t.Context(), "acme", "alice", sub); !errors.Is(err, ErrSubscription) {
		t.Errorf("subscribed: %v", err)
	}
	// A name passes the first check. The guard sees the address that it leads to.
	if err := s.store.save(context.Background(), account{"acme", "alice"}, r.subscription("https://private.example/x")); err != nil {
		t.Fatal(err)
	}
	guarded := s.client
	s.client = redirect{guarded}
	id := subscriptionID("https://private.example/x")
	_, err = s.attempt(t.Context(), t.Context(), account{"acme", "alice"}, id, &Notice{}, nil)
	if !errors.Is(err, errRefused) || strings.Contains(err.Error(), "/x") {
		t.Errorf("got %v", err)
	}
}

// redirect stands for a name that resolves to loopback.
type redirect struct{ doer }

func (d redirect) Do(r *http.Request) (*http.Response, error) {
	r.URL.Host = "127.0.0.1:1"
	return d.doer.Do(r)
}
