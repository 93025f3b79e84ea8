package responses

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/transcript"
)

// log is the random log of a turn with its responses.
type log struct {
	events []event.Event
	first  int64
}

// read reads a response in batches of random sizes. Its client has the events up to a number.
func (l *log) read(t *testing.T, r *rand.Rand, from, after int64) []frame {
	t.Helper()
	w := newWriter(newObject("c", answertest.Turn, from, settings{}), from, after)
	received := int64(-1)
	if after >= 0 {
		received = after / stride
	}
	a := answer.New(answertest.Turn, l.first, received)
	var stream strings.Builder
	for !w.hasEnded && a.Upto() < int64(len(l.events)) {
		end := a.Upto() + 1 + r.Int64N(int64(len(l.events))-a.Upto())
		if a.Upto() < a.ResumeSeq() {
			end = min(end, a.ResumeSeq())
		}
		batch := l.events[a.Upto():end]
		if r.IntN(2) == 0 {
			batch = mergeNeighbours(batch)
		}
		err := a.Apply(batch, end, false, func(op *answer.Op) error {
			w.apply(a, op)
			return w.err
		})
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(w.take())
	}
	return framesOf(t, stream.String())
}

// mergeNeighbours merges appends to the same text that follow each other, as feeds do for readers that are behind.
func mergeNeighbours(events []event.Event) (merged []event.Event) {
	for len(events) > 0 {
		n := 1
		isSame := func(x, y *event.Event) bool {
			return x.Type == event.PartAppend && y.Type == x.Type && x.Message == y.Message && x.Part == y.Part && x.Field == y.Field
		}
		for n < len(events) && isSame(&events[0], &events[n]) {
			n++
		}
		merged = append(merged, transcript.Merge(events[:n], nil)...)
		events = events[n:]
	}
	return merged
}

// text returns the texts of the messages of an output, without the questions of the turn.
func (o *object) text() string {
	var b strings.Builder
	for _, it := range o.Output {
		if it.Type == "message" && !strings.HasPrefix(it.ID, prefixMessage+answertest.Turn+".") {
			for _, p := range *it.Content {
				b.WriteString(p.Text)
			}
		}
	}
	return b.String()
}

// begins returns the numbers with which the responses of a turn begin.
func (l *log) begins(t *testing.T) (list []int64) {
	t.Helper()
	a := answer.New(answertest.Turn, l.first, -1)
	list = []int64{0}
	err := a.Apply(l.events, int64(len(l.events)), false, func(op *answer.Op) error {
		if op.Type == event.TurnResume {
			list = append(list, op.Number)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// However a log is divided into batches, merged and cut, a client that resumes has what one has that reads everything later.
func TestWriter(t *testing.T) {
	responses, resumed, outcomes := 0, 0, map[string]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := &log{}
		l.events, l.first = answertest.Log(t, r)
		for _, from := range l.begins(t) {
			responses++
			var exact client
			exact.number = -1
			all := l.readExact(t, from)
			for _, f := range all {
				if err := exact.apply(f); err != nil {
					t.Fatalf("seed %d, from %d: %v", seed, from, err)
				}
			}
			if exact.end == nil {
				t.Fatalf("seed %d, from %d: no end", seed, from)
			}
			outcomes[exact.end.Status]++
			// The live reading, cut and resumed at random.
			c := client{number: -1}
			for c.end == nil {
				frames := l.read(t, r, from, c.number)
				if len(frames) == 0 {
					t.Fatalf("seed %d, from %d: nothing after %d", seed, from, c.number)
				}
				if r.IntN(3) > 0 {
					frames = frames[:1+r.IntN(len(frames))]
					resumed++
				}
				for _, f := range frames {
					if err := c.apply(f); err != nil {
						t.Fatalf("seed %d, from %d: %v", seed, from, err)
					}
				}
			}
			if d := cmp.Diff(exact.end, c.end); d != "" {
				t.Fatalf("seed %d, from %d: (-want +got)\n%s", seed, from, d)
			}
			if d := cmp.Diff(exact.number, c.number); d != "" {
				t.Fatalf("seed %d, from %d: number of the end (-want +got)\n%s", seed, from, d)
			}
		}
	}
	t.Logf("%d responses, %d cuts, %v", responses, resumed, outcomes)
	for _, status := range []string{statusCompleted, statusFailed, statusCancelled} {
		if outcomes[status] == 0 {
			t.Errorf("no response is %s", status)
		}
	}
	if resumed == 0 || responses < 320 {
		t.Error("too few logs with waits and cuts")
	}
}

// readExact reads a response event by event.
func (l *log) readExact(t *testing.T, from int64) []frame {
	t.Helper()
	w := newWriter(newObject("c", answertest.Turn, from, settings{}), from, -1)
	a := answer.New(answertest.Turn, l.first, -1)
	var stream strings.Builder
	for i := range l.events {
		if w.hasEnded {
			break
		}
		err := a.Apply(l.events[i:i+1], int64(i+1), false, func(op *answer.Op) error {
			w.apply(a, op)
			return w.err
		})
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(w.take())
	}
	return framesOf(t, stream.String())
}

// The events of two readings with the same number are the same, except for the pieces of texts, which may be longer.
func TestNumbers(t *testing.T) {
	count := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := &log{}
		l.events, l.first = answertest.Log(t, r)
		byNumber := map[int64]frame{}
		for _, f := range l.readExact(t, 0) {
			byNumber[f.Number] = f
		}
		for _, f := range l.read(t, r, 0, -1) {
			want, ok := byNumber[f.Number]
			if !ok {
				t.Fatalf("seed %d: no event of the exact reading has the number %d of %s", seed, f.Number, f.Type)
			}
			count++
			if strings.HasSuffix(f.Type, ".delta") && strings.HasSuffix(f.Delta, want.Delta) {
				f.Delta = want.Delta
			}
			if d := cmp.Diff(want, f); d != "" {
				t.Fatalf("seed %d: (-want +got)\n%s", seed, d)
			}
		}
	}
	if count == 0 {
		t.Error("no events")
	}
}

// The texts of a turn's only response are the visible text of the turn, as are those of a reading of the compacted log.
func TestText(t *testing.T) {
	count := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := &log{}
		l.events, l.first = answertest.Log(t, r)
		if len(l.begins(t)) > 1 {
			continue
		}
		count++
		var fold transcript.Transcript
		for i := range l.events {
			if err := fold.Apply(&l.events[i]); err != nil {
				t.Fatal(err)
			}
		}
		frames := l.readExact(t, 0)
		if got, want := frames[len(frames)-1].Response.text(), fold.Visible(answertest.Turn); got != want {
			t.Fatalf("seed %d: %q, want %q", seed, got, want)
		}
		w := newWriter(newObject("c", answertest.Turn, 0, settings{}), 0, -1)
		a := answer.New(answertest.Turn, l.first, -1)
		err := a.Apply(transcript.Compact(l.events), int64(len(l.events)), true, func(op *answer.Op) error {
			w.apply(a, op)
			return w.err
		})
		if err != nil {
			t.Fatal(err)
		}
		c := client{number: -1}
		for _, f := range framesOf(t, string(w.take())) {
			if err := c.apply(f); err != nil {
				t.Fatalf("seed %d, compacted: %v", seed, err)
			}
		}
		if got, want := c.end.text(), fold.Visible(answertest.Turn); got != want {
			t.Fatalf("seed %d, compacted: %q, want %q", seed, got, want)
		}
	}
	if count < 50 {
		t.Errorf("only %d logs", count)
	}
}
