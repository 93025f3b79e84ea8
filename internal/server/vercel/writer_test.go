package vercel

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/transcript"
)

// world is a log that grows while responses are written.
type world struct {
	t      *testing.T
	r      *rand.Rand
	events []event.Event
	first  int64
	head   int // events that were committed
}

// isOpen reports whether a request is open at the head of the log.
func (w *world) isOpen(request string) (bool, error) {
	var fold transcript.Transcript
	for i := range w.events[:w.head] {
		if err := fold.Apply(&w.events[i]); err != nil {
			return false, err
		}
	}
	turn := fold.Turn(answertest.Turn)
	return turn != nil && slices.ContainsFunc(turn.Requests, func(r *transcript.Request) bool { return r.ID == request }), nil
}

// respond writes one response, as a stream does: after each batch, and until the turn ends or waits.
func (w *world) respond(version sdk, calls map[string]bool, after int64) (stream []byte, isPaused bool) {
	w.t.Helper()
	out := newWriter(version, answertest.Turn, calls, w.isOpen)
	out.start()
	stream = append(stream, out.take()...)
	a := answer.New(answertest.Turn, w.first, after)
	for !a.HasEnded() {
		if a.Upto() == int64(w.head) || w.r.IntN(3) == 0 {
			w.head = min(len(w.events), w.head+1+w.r.IntN(8))
		}
		end := a.Upto() + 1 + w.r.Int64N(int64(w.head)-a.Upto())
		err := a.Apply(w.events[a.Upto():end], end, false, func(op *answer.Op) error { return out.apply(a, op) })
		if err == nil {
			isPaused, err = out.flush(a)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		stream = append(stream, out.take()...)
		if isPaused {
			return stream, true
		}
	}
	return stream, false
}

// lastRequest returns the number of the last request that a client has.
func (w *world) lastRequest(c *client) int64 {
	w.t.Helper()
	number := int64(-1)
	a := answer.New(answertest.Turn, w.first, -1)
	err := a.Apply(w.events[w.first-1:w.head], int64(w.head), false, func(op *answer.Op) error {
		if op.Type == event.TurnWait {
			if call, _ := c.call(op.Get().Request.ID); call != nil {
				number = op.Number
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return number
}

// check compares what a client has at the end with the fold of the log. It reports whether the response was an error.
func (w *world) check(c *client) (isFailed bool) {
	w.t.Helper()
	var fold transcript.Transcript
	for i := range w.events {
		if err := fold.Apply(&w.events[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	turn := fold.Turn(answertest.Turn)
	if !c.isDone || c.messageID != answertest.Turn {
		w.t.Fatalf("the response of %q has no end", c.messageID)
	}
	if hasError := turn.Outcome == event.Failed || turn.Outcome == event.Interrupted; hasError || c.failure != "" {
		if hasError == (c.failure == textReplaced) || c.failure == "" {
			w.t.Fatalf("outcome %s: %q", turn.Outcome, c.failure)
		}
		return true
	}
	for _, m := range fold.Messages {
		for _, p := range m.Parts {
			id := partKey{m.ID, p.ID}.id()
			switch {
			case m.Turn != answertest.Turn:
			case p.Kind == event.KindText:
				if got := c.text("text", id); got != p.Text(event.Text) && turn.Outcome == event.Completed {
					w.t.Fatalf("part %s is %q, want %q", id, got, p.Text(event.Text))
				}
			case p.Kind == event.KindStatus:
				if got := c.text("data-status", id); got != string(statusOf(p)) {
					w.t.Fatalf("status %s is %s, want %s", id, got, statusOf(p))
				}
			case p.Kind == event.KindTool:
				call, n := c.call(id)
				if n != 1 || call.state != "output-available" && call.state != "output-error" {
					w.t.Fatalf("%d calls %s: %+v", n, id, call)
				}
				if want := string(outputOf(p)); p.State == event.PartDone && call.out != want {
					w.t.Fatalf("call %s has the output %s, want %s", id, call.out, want)
				}
			}
		}
	}
	return false
}

// However a log is divided into batches, a client that folds the chunks has the answer, also across waits, and a client that comes later too.
func TestWriter(t *testing.T) {
	pauses, failures, whole := 0, 0, 0
	var seed uint64
	var version sdk
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, version %d", seed, version)
		}
	}()
	for seed = range 200 {
		for _, version = range []sdk{sdk5, sdk6, sdk7} {
			r := rand.New(rand.NewPCG(seed, uint64(version)))
			events, first := answertest.Log(t, r)
			w := &world{t: t, r: r, events: events, first: first, head: int(first)}
			c := &client{version: version}
			after, calls := int64(-1), map[string]bool{}
			for {
				stream, isPaused := w.respond(version, calls, after)
				c.respond(t, stream)
				if !isPaused {
					break
				}
				pauses++
				if !strings.HasSuffix(string(stream), "data: {\"type\":\"finish\"}\n\n"+endOfStream) {
					t.Fatalf("a response that pauses ends with %s", stream)
				}
				after = w.lastRequest(c)
				for _, p := range c.parts {
					calls[p.id] = true
				}
				w.head = min(len(events), w.head+1+r.IntN(8))
			}
			late := &client{version: version}
			stream, _ := w.respond(version, nil, -1)
			late.respond(t, stream)
			for _, c := range []*client{c, late} {
				if w.check(c) {
					failures++
				} else {
					whole++
				}
			}
		}
	}
	t.Logf("%d waits, %d errors, %d whole answers", pauses, failures, whole)
	if pauses == 0 || failures == 0 || whole == 0 {
		t.Error("no log reached the interesting states")
	}
}
