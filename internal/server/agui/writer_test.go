package agui

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/transcript"
)

// world is a log that grows while runs are written.
type world struct {
	t      *testing.T
	r      *rand.Rand
	events []event.Event
	first  int64
	head   int // events that were committed
}

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

// run writes one run, as a stream does: after each batch, and until the turn ends or waits. A run that is cut ends after some batches.
func (w *world) run(in *input, encode encoder, isBehind, isCut bool) (stream []byte, hasEnded bool) {
	w.t.Helper()
	out := newWriter(in, encode)
	out.isBehind, out.head = isBehind, int64(w.head)
	out.isOpen = func(_, request string) (bool, error) {
		fold := w.fold()
		turn := fold.Turn(answertest.Turn)
		return turn != nil && slices.ContainsFunc(turn.Requests, func(r *transcript.Request) bool { return r.ID == request }), nil
	}
	out.history = func() ([]message, error) {
		fold := w.fold()
		return messagesOf(&fold, []string{answertest.Turn}), nil
	}
	out.start()
	stream = append(stream, out.take()...)
	a := answer.New(answertest.Turn, w.first, -1)
	for !a.HasEnded() {
		if isCut && w.r.IntN(4) == 0 {
			return stream, false
		}
		if a.Upto() == int64(w.head) || w.r.IntN(3) == 0 {
			w.head = min(len(w.events), w.head+1+w.r.IntN(8))
		}
		end := a.Upto() + 1 + w.r.Int64N(int64(w.head)-a.Upto())
		err := a.Apply(w.events[a.Upto():end], end, false, func(op *answer.Op) error {
			out.apply(a, op)
			return nil
		})
		isPaused := false
		if err == nil {
			isPaused, err = out.flush(a)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		stream = append(stream, out.take()...)
		if isPaused {
			return stream, false
		}
	}
	out.end(a.Turn())
	return append(stream, out.take()...), true
}

// However a log is divided into batches and cut, a client that folds the events has the same messages as one that comes later.
//
// Each cut ends a run at a random event. The client then comes back with what it has, as a page does that lost its connection, and the log has grown
// meanwhile. In half of the logs the client was there from the beginning of the turn, in the others it comes later.
func TestWriter(t *testing.T) {
	pauses, cuts, failures := 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		events, first := answertest.Log(t, r)
		w := &world{t: t, r: r, events: events, first: first, head: int(first)}
		c := &client{}
		isBehind := r.IntN(2) == 0
		for {
			isCut := r.IntN(2) == 0
			stream, hasEnded := w.run(c.input(), appendSSE, isBehind, isCut)
			c.run(t, stream)
			if hasEnded {
				break
			}
			if c.ended == runFinished {
				pauses++
			} else {
				cuts++
			}
			isBehind = true
			w.head = min(len(events), w.head+1+r.IntN(8))
		}
		if c.failure != "" {
			failures++
		}
		// A client that comes when everything is over.
		late := &client{}
		stream, _ := w.run(late.input(), appendSSE, true, false)
		late.run(t, stream)
		fold := w.fold()
		all := texts(messagesOf(&fold, nil))
		got := texts(c.messages)
		// A client that was there from the beginning of the turn and saw nothing taken back has only the turn's messages.
		for id, text := range all {
			if m := fold.Message(id); m != nil && m.Role == event.User && got[id] == "" {
				got[id] = text
			}
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Fatalf("seed %d: (-want +got)\n%s", seed, d)
		}
		if d := cmp.Diff(all, texts(late.messages)); d != "" {
			t.Fatalf("seed %d, late: (-want +got)\n%s", seed, d)
		}
	}
	t.Logf("%d waits, %d cuts, %d errors", pauses, cuts, failures)
	if pauses == 0 || cuts == 0 || failures == 0 {
		t.Error("no log reached the interesting states")
	}
}
