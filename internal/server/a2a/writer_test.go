package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// world is a log that grows while streams are written.
type world struct {
	t      *testing.T
	r      *rand.Rand
	events []event.Event
	first  int64
	head   int // events that were committed
	step   int // at most so many are committed at once
	isOld  bool
}

// grow commits further events.
func (w *world) grow() { w.head = min(len(w.events), w.head+1+w.r.IntN(w.step)) }

// fold returns the transcript up to the head of the log.
func (w *world) fold() (fold transcript.Transcript) {
	w.t.Helper()
	for i := range w.events[:w.head] {
		if err := fold.Apply(&w.events[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	return fold
}

// origin is the address of the gateway.
const origin = "http://gateway"

// view returns the view of the task.
func (w *world) view() view {
	return view{to: target{"c", answertest.Turn, "context"}, base: origin, isOpen: func(request string) (bool, error) {
		fold := w.fold()
		turn := fold.Turn(answertest.Turn)
		return turn != nil && slices.ContainsFunc(turn.Requests, func(r *transcript.Request) bool { return r.ID == request }), nil
	}}
}

// get returns what a client has that gets the task.
func (w *world) get(a *answer.Answer) *client {
	w.t.Helper()
	v := w.view()
	current, err := v.status(a)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &client{isOld: w.isOld}
	w.take(c, json.RawMessage("7"), v.task(a, current).forVersion(w.isOld))
	return c
}

// take gives a client an event with a result.
func (w *world) take(c *client, id json.RawMessage, result any) {
	w.t.Helper()
	b, err := appendEvent(nil, response{Version: "2.0", ID: id, Result: result})
	if err == nil {
		err = c.take(b)
	}
	if err != nil {
		w.t.Fatalf("%v: %s", err, b)
	}
}

// stream writes one stream, as a request does: after each batch, and until the turn ends or waits. If on isn't nil, it is called after each event,
// and the client must have, after each batch, what it would get instead.
func (w *world) stream(on func()) *client {
	w.t.Helper()
	c := &client{isOld: w.isOld}
	out := &writer{view: w.view(), id: json.RawMessage("7"), isOld: w.isOld, write: func(b []byte) error {
		if err := c.take(b); err != nil {
			return fmt.Errorf("%w: %s", err, b)
		}
		if on != nil {
			on()
		}
		return nil
	}}
	a := answer.New(answertest.Turn, w.first, -1)
	for {
		if a.Upto() == int64(w.head) || w.r.IntN(3) == 0 {
			w.grow()
		}
		end := a.Upto() + 1 + w.r.Int64N(int64(w.head)-a.Upto())
		if err := a.Apply(w.events[a.Upto():end], end, false, func(*answer.Op) error { return nil }); err != nil {
			w.t.Fatal(err)
		}
		err := out.sync(a)
		if err != nil && !errors.Is(err, errEnough) {
			w.t.Fatal(err)
		}
		if on != nil {
			if got := w.get(a); got.String() != c.String() {
				w.t.Fatalf("the stream has\n%s\nand the task is\n%s", c, got)
			}
		}
		if (err != nil) != c.hasEnded {
			w.t.Fatalf("%v, and the client has %s", err, c)
		}
		if c.hasEnded {
			return c
		}
	}
}

// streams writes streams until the turn has ended. After each wait the log grows, and the client subscribes.
func (w *world) streams(on func()) (c *client, waits int) {
	w.t.Helper()
	for {
		if c = w.stream(on); c.state != stateInput {
			return c, waits
		}
		if waits++; waits > len(w.events) {
			w.t.Fatalf("the client waits with %s, and the log has %d events", c, w.head)
		}
		w.grow()
	}
}

// withFiles gives the data parts of a log their data, some of them a file instead, and changes some of the data later. A log of the package
// answertest has neither.
func withFiles(r *rand.Rand, events []event.Event) []event.Event {
	events = slices.Clone(events)
	var data *event.Event // the start of a part that can still change
	for i := range events {
		e := &events[i]
		switch {
		case e.Type == event.PartStart && e.Body.Kind == event.KindData:
			body := *e.Body
			e.Body = &body
			switch r.IntN(4) {
			case 0:
				body.Kind, body.Media = event.KindMedia, &event.Media{URL: "data:image/png;base64,aGk=", MIME: "image/png", Name: "a.png"}
			case 1:
				body.Kind, body.Media = event.KindMedia, &event.Media{URL: "/files/1", Name: "b"}
			case 2:
				body.Data = json.RawMessage(`[1,"two"]`)
				data = e
			default:
				body.Name, body.Data = "chart", json.RawMessage(`{"n":1}`)
				data = e
			}
		case data == nil:
		case e.Type == event.PartEnd && e.Part == data.Part || e.Type == event.MessageEnd && e.Message == data.Message:
			data = nil
		case e.Type == event.TurnUpdate || e.Type == event.ConversationUpdate:
			*e = event.Event{Seq: e.Seq, At: e.At, Type: event.PartUpdate, Turn: data.Turn, Message: data.Message, Part: data.Part, Body: &event.Body{Data: fmt.Appendf(nil, `{"n":%d}`, r.IntN(3))}}
		}
	}
	return events
}

// logs is how many random logs are read.
const logs = 300

// newWorld returns the log of a seed, of which nothing but the turn's first event is committed.
func newWorld(t *testing.T, seed uint64, isOld bool) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	events, first := answertest.Log(t, r)
	return &world{t: t, r: r, events: withFiles(r, events), first: first, head: int(first), step: 8, isOld: isOld}
}

// late returns what a client has that gets the task at the end, from the log as it was written or as it is compacted.
func (w *world) late(isCompacted bool) *client {
	w.t.Helper()
	w.head = len(w.events)
	log := w.events
	if isCompacted {
		log = transcript.Compact(log)
	}
	begin := slices.IndexFunc(log, func(e event.Event) bool { return e.Seq >= w.first })
	a := answer.New(answertest.Turn, w.first, -1)
	if err := a.Apply(log[begin:], int64(w.head), isCompacted, func(*answer.Op) error { return nil }); err != nil {
		w.t.Fatal(err)
	}
	return w.get(a)
}

// However a log is divided into batches, and wherever a stream is cut, a client has the same task at the end: one that reads it live, one that
// subscribes again after any event of that, and one that gets the task afterwards.
func TestWriter(t *testing.T) {
	for _, isOld := range []bool{false, true} {
		t.Run(map[bool]string{false: "1.0", true: "0.3"}[isOld], func(t *testing.T) {
			t.Parallel()
			testWriter(t, isOld)
		})
	}
}

func testWriter(t *testing.T, isOld bool) {
	var seed uint64
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	cuts, waits, replaced, artifacts := 0, 0, 0, 0
	for seed = range logs {
		w := newWorld(t, seed, isOld)
		var heads []int // of the log at each event
		live, n := w.streams(func() { heads = append(heads, w.head) })
		waits += n
		for _, isCompacted := range []bool{false, true} {
			if late := w.late(isCompacted); late.String() != live.String() {
				t.Fatalf("compacted %v: the task is\n%s\nwant\n%s", isCompacted, late, live)
			}
		}
		fold := w.fold()
		if text := fold.Visible(answertest.Turn); live.text() != text {
			t.Fatalf("the client has %q, and the log %q", live.text(), text)
		}
		if a := live.artifacts[textArtifact]; a != nil && a.text == "" {
			replaced++
		}
		artifacts += len(live.artifacts)
		// Two cuts are the same if the log has the same head: what a client had before doesn't count.
		cuts += len(heads)
		w.step = 80 // so that the many streams stay short
		for _, head := range slices.Compact(heads) {
			w.head = head
			if resumed, _ := w.streams(nil); resumed.String() != live.String() {
				t.Fatalf("resumed after %d of %d events of the log:\n%s\nwant\n%s", head, len(w.events), resumed, live)
			}
		}
	}
	t.Logf("%d logs, %d cuts, %d waits, %d texts that were taken back, %d artifacts", logs, cuts, waits, replaced, artifacts)
	if cuts == 0 || waits == 0 || replaced == 0 || artifacts == 0 {
		t.Error("no log reached the interesting states")
	}
}

// The same logs, stored: the methods of both versions return the tasks, and refuse to subscribe to what has ended.
func TestStoredTasks(t *testing.T) {
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	id := func(seed uint64, name string) string { return fmt.Sprintf("%s-%d", name, seed) }
	// The key is the one by which the gateway finds the conversation of a turn.
	for seed := range uint64(logs) {
		events := newWorld(t, seed, false).events
		for i := range events {
			if events[i].Turn != "" {
				events[i].Turn = id(seed, events[i].Turn)
			}
		}
		conversation := id(seed, "c")
		if err := j.Append(t.Context(), journal.Batch{
			Conversation: conversation, Create: true, Events: events,
			Summary: &journal.Summary{ID: conversation, Metadata: map[string]json.RawMessage{metaContext: json.RawMessage(`"context"`)}},
			Keys:    []journal.KeyValue{{Key: "turn/" + id(seed, answertest.Turn), Value: []byte(conversation)}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	h := &harness{outputtest.StartWith(t, j, echo, quota.Limits{}, func(h *outputtest.Harness) { Register(h.Server, h.Gateway) })}
	for seed := range uint64(logs) {
		turn := id(seed, answertest.Turn)
		for method, isOld := range map[string]bool{"GetTask": false, "tasks/get": true} {
			body := h.Ask(http.StatusOK, "", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{"id":"`+turn+`"}}`)
			var r struct{ Result update }
			if err := json.Unmarshal([]byte(strings.ReplaceAll(body, h.URL, origin)), &r); err != nil {
				t.Fatal(err)
			}
			c := &client{isOld: isOld}
			if err := c.whole(r.Result); err != nil || c.id != turn || r.Result.ContextID != "context" {
				t.Fatalf("seed %d: %v: %s", seed, err, body)
			}
			if want := newWorld(t, seed, isOld).late(false); c.String() != want.String() {
				t.Fatalf("seed %d: %s returns\n%s\nwant\n%s", seed, method, c, want)
			}
		}
		for _, method := range []string{"SubscribeToTask", "tasks/resubscribe"} {
			if got := h.rpc("", method, `{"id":"`+turn+`"}`); got.Error == nil || got.Error.Code != codeUnsupported {
				t.Fatalf("seed %d: %s: %+v", seed, method, got)
			}
		}
	}
}
