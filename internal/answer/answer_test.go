package answer_test

import (
	"cmp"
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
	client   *answertest.Client   // at the end
	states   []*answertest.Client // after each operation that the client didn't have
	appended []string             // the visible text of the pieces for these operations, so far
	appender answer.Appender
}

// take applies events to an answer, and what follows to the client.
func (r *reading) take(t *testing.T, a *answer.Answer, events []event.Event, upto int64, isMerged bool) {
	t.Helper()
	err := a.Apply(events, upto, isMerged, func(op *answer.Op) error {
		pieces := r.appender.Next(a, op)
		if op.IsReceived {
			return nil
		}
		c := r.client.Clone()
		if err := c.Apply(op); err != nil {
			return err
		}
		var requests []string
		for _, request := range a.Turn().Requests {
			requests = append(requests, request.ID)
		}
		if !slices.Equal(c.Open, requests) {
			return fmt.Errorf("open requests %q, want %q", c.Open, requests)
		}
		text := join(pieces)
		if n := len(r.appended); n > 0 {
			text = r.appended[n-1] + text
		}
		r.client, r.states, r.appended = c, append(r.states, c), append(r.appended, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

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
func one(t *testing.T, events []event.Event, first int64) *reading {
	t.Helper()
	r := &reading{client: answertest.New()}
	a := answer.New(answertest.Turn, first, -1)
	for i := first - 1; i < int64(len(events)); i++ {
		r.take(t, a, events[i:i+1], events[i].Seq, false)
	}
	return r
}

// A feed merges what a slow reader has missed. That changes how many operations there are and not what a client has after a number.
func TestLive(t *testing.T) {
	merged, taken := 0, 0
	each(t, 1000, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		single, live := one(t, events, first), &reading{client: answertest.New()}
		a := answer.New(answertest.Turn, first, -1)
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
			live.take(t, a, batch, upto, false)
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
		c := live.client
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
	resumed, unclear := 0, 0
	each(t, 60, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		if err := f.Publish(events); err != nil {
			t.Fatal(err)
		}
		head, compacted, unmerged := int64(len(events)), transcript.Compact(events), unmerge(t, events)
		visible, _, _ := want(t, events)
		single := one(t, events, first)
		index := map[int64]int{} // of the states by number
		for i, c := range single.states {
			index[c.Number] = i
		}
		for i := -1; i < len(single.states); i++ {
			c, appended := answertest.New(), ""
			if i >= 0 {
				c, appended = single.states[i], single.appended[i]
			}
			resume := func(read func(a *answer.Answer, to *reading)) *reading {
				to := &reading{client: c}
				read(answer.New(answertest.Turn, first, c.Number), to)
				if to.client.String() != single.client.String() {
					t.Fatalf("resumed after %d:\n%s\nwant\n%s", c.Number, to.client, single.client)
				}
				return to
			}
			fromFeed := resume(func(a *answer.Answer, to *reading) {
				for a.Upto() < head {
					end := head
					if a.Upto() < a.ResumeSeq() {
						end = a.ResumeSeq()
					}
					batch, upto, _ := f.InOrder(a.Upto(), end, r.IntN(200))
					to.take(t, a, batch, upto, false)
				}
			})
			fromTrace := resume(func(a *answer.Answer, to *reading) { to.take(t, a, unmerged, head, false) })
			for _, to := range []*reading{fromFeed, fromTrace} {
				for k, s := range to.states {
					j := index[s.Number]
					if !maps.Equal(s.Texts, single.states[j].Texts) || appended+to.appended[k] != single.appended[j] {
						t.Fatalf("at %d, resumed after %d: %q, %q was appended; want %q, %q", s.Number, c.Number, s.Texts, to.appended[k], single.states[j].Texts, single.appended[j])
					}
				}
				if to.appender.IsContradicted() != single.appender.IsContradicted() {
					t.Fatalf("contradicted %v", to.appender.IsContradicted())
				}
			}
			// The log may be compacted after its first events were read.
			fromLog := resume(func(a *answer.Answer, to *reading) {
				from := first - 1
				if r.IntN(2) == 0 {
					from += r.Int64N(head - first + 2)
				}
				to.take(t, a, events[first-1:from], from, false)
				n, _ := slices.BinarySearchFunc(compacted, from+1, func(e event.Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
				to.take(t, a, compacted[n:], head, true)
			})
			if fromLog.appender.IsContradicted() {
				unclear++
				continue
			}
			resumed++
			if n := len(fromLog.appended); n > 0 {
				appended += fromLog.appended[n-1]
			}
			if appended != visible {
				t.Fatalf("resumed after %d, %q was appended, want %q", c.Number, appended, visible)
			}
		}
	})
	t.Logf("%d clients resumed, and %d could only have the texts replaced", resumed, unclear)
	if resumed == 0 || unclear == 0 {
		t.Error("no log reached the interesting states")
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
