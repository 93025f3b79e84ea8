package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

func TestBackoff(t *testing.T) {
	for failures, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 12: 2048 * time.Second, 13: time.Hour, 40: time.Hour, 1 << 40: time.Hour, 0: time.Second} {
		seen := map[time.Duration]bool{}
		for range 50 {
			d := refusedSchedule.Wait(failures)
			if d < most/2 || d > most {
				t.Errorf("after %d failures: %v, want %v at most and a half of it at least", failures, d, most)
			}
			seen[d] = true
		}
		if len(seen) < 25 {
			t.Errorf("after %d failures: all waits are equal", failures)
		}
	}
}

// turn is the events of a turn in which an agent asks a question, gets an answer and ends.
func turn() []event.Event {
	return []event.Event{
		{Type: event.TurnStart, Turn: "t", Body: &event.Body{Agent: "demo", Parent: "p"}},
		{Type: event.MessageStart, Turn: "t", Message: "m1", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Turn: "t", Message: "m1", Part: "p1", Body: &event.Body{Kind: event.KindText}},
		{Type: event.PartAppend, Turn: "t", Message: "m1", Part: "p1", Text: "s3cret answer"},
		{Type: event.TurnWait, Turn: "t", Body: &event.Body{Request: &event.Request{ID: "r", Kind: event.RequestApproval, Tool: "rm", Prompt: "s3cret prompt", Data: json.RawMessage(`{"s3cret":1}`)}}},
	}
}

var over = event.Event{Type: event.TurnEnd, Turn: "t", Body: &event.Body{
	Outcome: event.Failed, Reason: "s3cret reason", Error: &event.Error{Code: "overloaded", Message: "s3cret error", Retryable: true}, Usage: &event.Usage{Input: 3},
}}

// With Content, a delivery contains all texts; without it, only the reason of a failure. No text is stored in either case.
func TestContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with, without := &receiver{t: t}, &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"content": with, "a": without}).start()
		h.Close() // so that what is stored can be looked at
		h.say("c", "s3cret question")
		h.add("c", turn()...)
		keys, err := h.disk.Keys(t.Context(), Prefix)
		if err != nil || len(keys) != 4 {
			t.Fatal(keys, err)
		}
		for _, kv := range keys {
			if strings.Contains(string(kv.Value), "s3cret") {
				t.Errorf("stored: %s", kv.Value)
			}
		}
		again := newHarness(t, h.disk, 100, map[string]*receiver{"content": with, "a": without}).start()
		defer again.Close()
		synctest.Wait()
		again.heads = h.heads
		again.add("c", over)
		synctest.Wait()
		for _, r := range []*receiver{with, without} {
			if got := r.took(); !slices.Equal(got, []string{"c/1", "c/6", "c/7"}) {
				t.Fatalf("delivered %q", got)
			}
			ask, end := r.got[1].Body, r.got[2].Body
			if ask.Turn != "t" || ask.Agent != "demo" || ask.Parent != "p" || ask.Message != "m1" || ask.Request.ID != "r" || ask.Request.Tool != "rm" {
				t.Errorf("turn.wait: %+v", ask)
			}
			if end.Outcome != event.Failed || end.Reason != "s3cret reason" || end.Error.Message != "s3cret error" || !end.Error.Retryable || end.Usage.Input != 3 || end.Message != "m1" {
				t.Errorf("turn.end: %+v", end)
			}
		}
		if g := with.got; g[0].Text != "s3cret question" || g[1].Request.Prompt != "s3cret prompt" || string(g[1].Request.Data) != `{"s3cret":1}` || g[2].Text != "s3cret answer" {
			t.Errorf("with content: %+v", g)
		}
		if g := without.got; g[0].Text != "" || g[1].Request.Prompt != "" || g[1].Request.Data != nil || g[2].Text != "" {
			t.Errorf("without content: %+v", g)
		}
	})
}

func TestLongTextTruncated(t *testing.T) {
	var b Body
	b.setText(strings.Repeat("x", maxText-1) + "ä" + "end")
	if !b.Truncated || len(b.Text) != maxText-1 {
		t.Errorf("%d bytes, truncated %v", len(b.Text), b.Truncated)
	}
	b = Body{}
	b.setText(strings.Repeat("x", maxText))
	if b.Truncated || len(b.Text) != maxText {
		t.Errorf("%d bytes, truncated %v", len(b.Text), b.Truncated)
	}
}

// However many deliveries wait, memory is bounded. All arrive, in order within each conversation, including those added
// meanwhile.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, conversations, size = 10_000, 250, 500
		var up atomic.Bool
		var mu sync.Mutex
		most := 0
		r := &receiver{t: t}
		h := newHarness(t, nil, size, map[string]*receiver{"a": r})
		r.answer = func(*Body) (int, http.Header, error) {
			q := h.queues[0]
			q.mu.Lock()
			held := q.window.len() + len(q.arrivals)
			q.mu.Unlock()
			mu.Lock()
			most = max(most, held)
			mu.Unlock()
			if !up.Load() {
				return 0, nil, errRefused
			}
			return http.StatusOK, nil, nil
		}
		h.start()
		defer h.Close()
		for i := range n {
			h.say(fmt.Sprint("c", i%conversations), "x")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		tries := len(r.took())
		up.Store(true)
		for i := range conversations { // while it catches up
			time.Sleep(250 * time.Millisecond)
			h.say(fmt.Sprint("c", i), "late")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		last := map[string]int64{}
		for _, g := range r.got[tries:] {
			if g.Seq != last[g.Conversation]+1 {
				t.Fatalf("%s: seq %d arrived after %d", g.Conversation, g.Seq, last[g.Conversation])
			}
			last[g.Conversation] = g.Seq
		}
		for c, seq := range last {
			if seq != n/conversations+1 {
				t.Errorf("%s: seq %d arrived last", c, seq)
			}
		}
		if len(last) != conversations || h.stored() != 0 {
			t.Errorf("%d conversations, %d deliveries are still stored", len(last), h.stored())
		}
		if most > size+maxArrivals {
			t.Errorf("%d were held at once", most)
		}
	})
}

// A stored delivery that can't be decoded delays nothing, and is logged rather than silently deleted.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		h.Close()
		h.say("c", "1")
		if err := h.disk.Append(t.Context(), journal.Batch{Conversation: Log, Keys: []journal.KeyValue{{Key: Prefix + "a/0", Value: []byte("{")}}}); err != nil {
			t.Fatal(err)
		}
		again := newHarness(t, h.disk, 100, map[string]*receiver{"a": r}).start()
		defer again.Close()
		synctest.Wait()
		r.want("c/1")
		if h.stored() != 1 {
			t.Errorf("%d deliveries are stored", h.stored())
		}
	})
}

// A delivery that is purged while it waits is neither sent nor stored again.
func TestPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		purge := func() {
			keys, err := h.disk.Keys(t.Context(), Prefix)
			if err != nil {
				t.Error(err)
			}
			for i := range keys {
				keys[i].Value = nil
			}
			if err := h.disk.Append(t.Context(), journal.Batch{Conversation: Log, Keys: keys}); err != nil {
				t.Error(err)
			}
		}
		both := make(chan struct{})
		r.answer = func(*Body) (int, http.Header, error) {
			<-both
			purge() // while it is out, and the next one waits
			return http.StatusInternalServerError, nil, nil
		}
		h.say("c", "1")
		h.say("c", "2")
		close(both)
		time.Sleep(time.Hour)
		synctest.Wait()
		r.want("c/1")
		if h.stored() != 0 {
			t.Errorf("%d deliveries are stored", h.stored())
		}
	})
}
