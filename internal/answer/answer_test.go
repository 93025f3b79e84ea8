package answer_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// reading is one way to read an answer.
type reading struct {
	states   []*answertest.Client // after each operation
	appended []string             // what an Appender has returned up to each operation
	last     *answer.Answer
	appender answer.Appender
}

// take applies events to an answer, for a client that has what c has.
func (r *reading) take(t testing.TB, a *answer.Answer, c *answertest.Client, events []event.Event, upto int64, isMerged bool) *answertest.Client {
	r.last = a
	err := a.Apply(events, upto, isMerged, func(op *answer.Op) error {
		c = c.Clone()
		if err := c.Apply(op); err != nil {
			return err
		}
		var open []string
		for _, request := range a.Turn().Requests {
			open = append(open, request.ID)
		}
		if !slices.Equal(c.Open, open) {
			return fmt.Errorf("open requests %q, want %q", c.Open, open)
		}
		appended := ""
		if n := len(r.appended); n > 0 {
			appended = r.appended[n-1]
		}
		for _, p := range r.appender.Next(a, op) {
			if !p.IsReasoning {
				appended += p.Text
			}
		}
		r.states, r.appended = append(r.states, c), append(r.appended, appended)
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// whole returns the state at the end of a reading.
func (r *reading) whole() string { return r.states[len(r.states)-1].String() }

// want returns what a client must have at the end, from the fold of the log.
//
// takesBack reports whether the turn takes back text that can have been sent: any text, and a status that is final.
func want(tb testing.TB, events []event.Event) (visible string, texts map[string]string, takesBack bool) {
	var t transcript.Transcript
	for i := range events {
		e := &events[i]
		// A part of a message that has ended is before what was sent of the next one.
		if m := t.Message(e.Message); e.Type == event.PartStart && e.Turn == answertest.Turn {
			takesBack = takesBack || m.Final
		}
		if m := t.Message(e.Message); e.Type == event.PartReplace && e.Turn == answertest.Turn {
			p := m.Part(e.Part)
			isSent := p.Kind == event.KindText || p.Kind == event.KindStatus && p.Final
			takesBack = takesBack || isSent && !strings.HasPrefix(e.Text, p.Text(event.Text))
		}
		if err := t.Apply(e); err != nil {
			tb.Fatal(err)
		}
	}
	texts = map[string]string{}
	for _, m := range t.Messages {
		for _, p := range m.Parts {
			for _, f := range transcript.Fields {
				if m.Turn == answertest.Turn && p.Len(f) > 0 {
					texts[m.ID+"/"+p.ID+"."+f.Name()] = p.Text(f)
				}
			}
		}
	}
	return t.Visible(answertest.Turn), texts, takesBack
}

// each calls fn with n logs, which are the same in each run.
func each(t *testing.T, n uint64, fn func(r *rand.Rand, events []event.Event, first int64)) {
	t.Helper()
	seed := uint64(0)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for ; seed < n; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		events, first := answertest.Log(t, r)
		fn(r, events, first)
	}
}

// one reads a log event by event.
func one(t testing.TB, events []event.Event, first, after int64, c *answertest.Client) *reading {
	r := &reading{}
	a := answer.New(answertest.Turn, first, after)
	for i := range events {
		if events[i].Seq >= first {
			c = r.take(t, a, c, events[i:i+1], events[i].Seq, false)
		}
	}
	return r
}

// A feed merges what a slow reader has missed. That changes how many operations there are and not what a client has after a number.
func TestLive(t *testing.T) {
	merged, taken := 0, 0
	each(t, 1000, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		single, live := one(t, events, first, -1, answertest.New()), &reading{}
		a, c := answer.New(answertest.Turn, first, -1), answertest.New()
		for remaining := events; a.Upto() < int64(len(events)); {
			n := min(len(remaining), r.IntN(8))
			if err := f.Publish(remaining[:n]); err != nil {
				t.Fatalf("%v", err)
			}
			remaining = remaining[n:]
			if f.Head() < first || r.IntN(2) == 0 {
				continue
			}
			batch, upto, ok := f.InOrder(a.Upto(), f.Head(), r.IntN(100))
			if !ok {
				t.Fatalf("the feed has nothing after %d", a.Upto())
			}
			c = live.take(t, a, c, batch, upto, false)
		}
		merged += len(single.states) - len(live.states)
		byNumber := map[int64]int{}
		for i, s := range single.states {
			byNumber[s.Number] = i
		}
		for i, s := range live.states {
			j, ok := byNumber[s.Number]
			if !ok || single.states[j].String() != s.String() {
				t.Fatalf("after %d a client has\n%s\nand event by event\n%s", s.Number, s, single.states[j])
			}
			if live.appended[i] != single.appended[j] {
				t.Fatalf("after %d %q was appended, and event by event %q", s.Number, live.appended[i], single.appended[j])
			}
		}
		visible, texts, takesBack := want(t, events)
		if !maps.Equal(c.Texts, texts) {
			t.Fatalf("got %q, want %q", c.Texts, texts)
		}
		if c.Needless > 0 {
			t.Fatalf("%d replaces take nothing back", c.Needless)
		}
		if !a.HasEnded() || c.Outcome != events[len(events)-1].Body.Outcome {
			t.Fatalf("outcome %s", c.Outcome)
		}
		if whole := join(a.Pieces()); whole != visible {
			t.Fatalf("pieces %q, visible %q", whole, visible)
		}
		appended := live.appended[len(live.appended)-1]
		if live.appender.IsContradicted() == strings.HasPrefix(visible, appended) {
			t.Fatalf("appended %q, visible %q, contradicted %v", appended, visible, live.appender.IsContradicted())
		}
		if live.appender.IsContradicted() {
			taken++
			if !takesBack {
				t.Fatalf("%q was appended, but only %q is final", appended, visible)
			}
		} else if appended != visible {
			t.Fatalf("appended %q, visible %q", appended, visible)
		}
	})
	t.Logf("%d operations merged, %d contradictions", merged, taken)
	if merged == 0 || taken == 0 {
		t.Error("no log reached the interesting states")
	}
}

// A client that resumes after any number gets the rest, from memory, from the log, and from a compacted log.
func TestResume(t *testing.T) {
	merged := 0
	each(t, 60, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		if err := f.Publish(events); err != nil {
			t.Fatalf("%v", err)
		}
		head, compacted := int64(len(events)), transcript.Compact(events)
		single := one(t, events, first, -1, answertest.New())
		final := single.whole()
		unmerged := unmerge(t, events)
		byNumber := map[int64]*answertest.Client{}
		for _, c := range single.states {
			byNumber[c.Number] = c
		}
		for _, c := range append([]*answertest.Client{answertest.New()}, single.states...) {
			if got := one(t, events, first, c.Number, c).last; !got.HasEnded() {
				t.Fatalf("after %d the answer has not ended", c.Number)
			}
			// From a feed.
			fromFeed := &reading{}
			a, d := answer.New(answertest.Turn, first, c.Number), c
			for a.Upto() < head {
				end := head
				if a.Upto() < a.ResumeSeq() {
					end = a.ResumeSeq()
				}
				batch, upto, _ := f.InOrder(a.Upto(), end, r.IntN(200))
				d = fromFeed.take(t, a, d, batch, upto, false)
			}
			if d.String() != final {
				t.Fatalf("after %d from the feed:\n%s\nwant\n%s", c.Number, d, final)
			}
			// From a compacted log, which was not compacted yet when the first events of it were read.
			a, d = answer.New(answertest.Turn, first, c.Number), c
			fromLog := &reading{}
			from := int(first-1) + r.IntN(len(events)-int(first-1)+1)
			if r.IntN(2) == 0 {
				from = int(first - 1)
			}
			d = fromLog.take(t, a, d, events[first-1:from], int64(from), false)
			i, _ := slices.BinarySearchFunc(compacted, int64(from)+1, func(e event.Event, seq int64) int { return int(e.Seq - seq) })
			d = fromLog.take(t, a, d, compacted[i:], head, true)
			if d.String() != final {
				t.Fatalf("after %d, raw to %d, from the compacted log:\n%s\nwant\n%s", c.Number, from, d, final)
			}
			merged += len(fromLog.states)
			// From a compacted log with its trace.
			a, d = answer.New(answertest.Turn, first, c.Number), c
			fromTrace := &reading{}
			d = fromTrace.take(t, a, d, unmerged, head, false)
			if d.String() != final {
				t.Fatalf("after %d with the trace:\n%s\nwant\n%s", c.Number, d, final)
			}
			for _, s := range append(fromTrace.states, fromFeed.states...) {
				if want := byNumber[s.Number]; !maps.Equal(s.Texts, want.Texts) {
					t.Fatalf("at %d, resumed after %d: %q, want %q", s.Number, c.Number, s.Texts, want.Texts)
				}
			}
		}
	})
	if merged == 0 {
		t.Error("no client got anything of a compacted log")
	}
}

func join(pieces []answer.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		if !p.IsReasoning {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// unmerge returns the events of the turn from a journal that has compacted its log and has the trace.
func unmerge(t *testing.T, events []event.Event) []event.Event {
	j := memory.New()
	err := j.Append(t.Context(), journal.Batch{Conversation: "c", Create: true, Events: slices.Clone(events), Summary: &journal.Summary{ID: "c"}})
	if err == nil {
		err = j.Compact(t.Context(), "c", int64(len(events)))
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := j.Read(t.Context(), "c", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := j.Trace(t.Context(), "c", answertest.Turn)
	if err != nil {
		t.Fatal(err)
	}
	unmerged, ok := trace.Unmerge(slices.DeleteFunc(log.Events, func(e event.Event) bool { return e.Turn != answertest.Turn }))
	if !ok {
		t.Fatal("the trace is not that of the log")
	}
	return unmerged
}

// log is a journal with one conversation.
type log []event.Event

func (l log) Read(_ context.Context, _ string, after int64, _ int) (feed.Stretch, error) {
	s := feed.Stretch{Epoch: "e", Head: int64(len(l))}
	if after < s.Head {
		s.Events = l[after:]
	}
	return s, nil
}

// open returns the feed of an empty conversation.
func open(t *testing.T) *feed.Feed {
	f, err := feed.NewRegistry(log(nil), feed.Config{}).Acquire(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
