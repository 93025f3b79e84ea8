package answer_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// client is what a client has of an answer, from the operations alone.
type client struct {
	number int64             // of the last operation
	texts  map[string]string // by message, part and field
	parts  []string          // in the order in which they began
	ended  []string          // messages and parts
	open   []string          // requests
	tools  map[string]event.PartState
	phase  string
	// Replaces that take nothing back.
	replaces int
	outcome  event.Outcome
}

func newClient() *client {
	return &client{number: -1, texts: map[string]string{}, tools: map[string]event.PartState{}}
}

func (c *client) clone() *client {
	d := *c
	d.tools = maps.Clone(c.tools)
	d.texts, d.parts, d.ended, d.open = maps.Clone(c.texts), slices.Clone(c.parts), slices.Clone(c.ended), slices.Clone(c.open)
	return &d
}

// String returns everything that the client has.
func (c *client) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.texts)) {
		if c.texts[k] != "" {
			fmt.Fprintf(&b, "%s %q\n", k, c.texts[k])
		}
	}
	fmt.Fprintln(&b, "parts", c.parts, "tools", c.tools, "ended", slices.Sorted(slices.Values(c.ended)), "open", c.open, "phase", c.phase, "outcome", c.outcome)
	return b.String()
}

func (c *client) apply(op *answer.Op) error {
	if op.Number <= c.number {
		return fmt.Errorf("operation %d follows %d", op.Number, c.number)
	}
	c.number = op.Number
	k := op.Message + "/" + op.Part + "." + op.Field.Name()
	switch b := op.Get(); op.Type {
	case event.PartAppend:
		if op.Offset != int64(len(c.texts[k])) || op.Text == "" {
			return fmt.Errorf("%q is appended at %d to %s, which has %d bytes", op.Text, op.Offset, k, len(c.texts[k]))
		}
		c.texts[k] += op.Text
	case event.PartReplace:
		if strings.HasPrefix(op.Text, c.texts[k]) {
			c.replaces++
		}
		c.texts[k] = op.Text
	case event.MessageUpdate:
		return errors.New("the state of the user's message is not part of the answer")
	case event.MessageAdd:
		for i, p := range b.Parts {
			id := fmt.Sprint(op.Message, "/p", i+1)
			c.texts[id+".text"] = p.Text
			c.parts = append(c.parts, id)
		}
	case event.PartStart:
		c.parts = append(c.parts, op.Message+"/"+op.Part)
	case event.MessageEnd, event.PartEnd:
		c.ended = append(c.ended, op.Message+"/"+op.Part)
	case event.PartUpdate:
		c.tools[op.Message+"/"+op.Part] = b.State
	case event.TurnUpdate:
		c.phase = b.Phase
	case event.TurnWait:
		c.open = append(c.open, b.Request.ID)
	case event.TurnResume:
		c.open = slices.DeleteFunc(c.open, func(id string) bool { return id == b.Answer.ID })
	case event.TurnEnd:
		c.outcome, c.open = b.Outcome, nil
	}
	return nil
}

// reading is one way to read an answer.
type reading struct {
	states []*client // after each operation
	said   []string  // what an Appender has returned up to each operation
	last   *answer.Answer
	append answer.Appender
}

// take applies events to an answer, for a client that has what c has.
func (r *reading) take(t testing.TB, a *answer.Answer, c *client, events []event.Event, upto int64, isMerged bool) *client {
	r.last = a
	err := a.Apply(events, upto, isMerged, func(op *answer.Op) error {
		c = c.clone()
		if err := c.apply(op); err != nil {
			return err
		}
		var open []string
		for _, request := range a.Turn().Requests {
			open = append(open, request.ID)
		}
		if !slices.Equal(c.open, open) {
			return fmt.Errorf("open requests %q, want %q", c.open, open)
		}
		said := ""
		if n := len(r.said); n > 0 {
			said = r.said[n-1]
		}
		for _, p := range r.append.Next(a, op) {
			if !p.IsReasoning {
				said += p.Text
			}
		}
		r.states, r.said = append(r.states, c), append(r.said, said)
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
		if m := t.Message(e.Message); e.Type == event.PartStart && e.Turn == turn {
			takesBack = takesBack || m.Final
		}
		if m := t.Message(e.Message); e.Type == event.PartReplace && e.Turn == turn {
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
				if m.Turn == turn && p.Len(f) > 0 {
					texts[m.ID+"/"+p.ID+"."+f.Name()] = p.Text(f)
				}
			}
		}
	}
	return t.Visible(turn), texts, takesBack
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
		events, first := generate(t, r)
		fn(r, events, first)
	}
}

// one reads a log event by event.
func one(t testing.TB, events []event.Event, first, after int64, c *client) *reading {
	r := &reading{}
	a := answer.New(turn, first, after)
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
	each(t, 2000, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		single, live := one(t, events, first, -1, newClient()), &reading{}
		a, c := answer.New(turn, first, -1), newClient()
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
			byNumber[s.number] = i
		}
		for i, s := range live.states {
			j, ok := byNumber[s.number]
			if !ok || single.states[j].String() != s.String() {
				t.Fatalf("after %d a client has\n%s\nand event by event\n%s", s.number, s, single.states[j])
			}
			if live.said[i] != single.said[j] {
				t.Fatalf("after %d %q was said, and event by event %q", s.number, live.said[i], single.said[j])
			}
		}
		visible, texts, takesBack := want(t, events)
		if got := map[string]string(nonEmpty(c.texts)); !maps.Equal(got, texts) {
			t.Fatalf("got %q, want %q", got, texts)
		}
		if c.replaces > 0 {
			t.Fatalf("%d replaces take nothing back", c.replaces)
		}
		if !a.HasEnded() || c.outcome != events[len(events)-1].Body.Outcome {
			t.Fatalf("outcome %s", c.outcome)
		}
		if whole := join(a.Pieces()); whole != visible {
			t.Fatalf("pieces %q, visible %q", whole, visible)
		}
		said := live.said[len(live.said)-1]
		if live.append.IsContradicted() == strings.HasPrefix(visible, said) {
			t.Fatalf("said %q, visible %q, contradicted %v", said, visible, live.append.IsContradicted())
		}
		if live.append.IsContradicted() {
			taken++
			if !takesBack {
				t.Fatalf("%q was said, but only %q is final", said, visible)
			}
		} else if said != visible {
			t.Fatalf("said %q, visible %q", said, visible)
		}
	})
	t.Logf("%d operations merged, %d contradictions", merged, taken)
	if merged == 0 || taken == 0 {
		t.Error("no log reached the interesting states")
	}
}

// A client that resumes after any number gets the rest, from memory, from the log, and from a compacted log.
func TestResume(t *testing.T) {
	replaced := 0
	each(t, 100, func(r *rand.Rand, events []event.Event, first int64) {
		f := open(t)
		defer f.Release()
		if err := f.Publish(events); err != nil {
			t.Fatalf("%v", err)
		}
		head, compacted := int64(len(events)), transcript.Compact(events)
		single := one(t, events, first, -1, newClient())
		final := single.whole()
		for _, c := range append([]*client{newClient()}, single.states...) {
			if got := one(t, events, first, c.number, c).last; !got.HasEnded() {
				t.Fatalf("after %d the answer has not ended", c.number)
			}
			// From a feed.
			fromFeed := &reading{}
			a, d := answer.New(turn, first, c.number), c
			for a.Upto() < head {
				end := head
				if a.Upto() < a.Cut() {
					end = a.Cut()
				}
				batch, upto, _ := f.InOrder(a.Upto(), end, r.IntN(200))
				d = fromFeed.take(t, a, d, batch, upto, false)
			}
			if d.String() != final {
				t.Fatalf("after %d from the feed:\n%s\nwant\n%s", c.number, d, final)
			}
			for i, s := range fromFeed.states {
				if i == 0 && s.number <= c.number {
					t.Fatalf("%d after %d", s.number, c.number)
				}
			}
			// From a compacted log, which was not compacted yet when the first events of it were read.
			a, d = answer.New(turn, first, c.number), c
			fromLog := &reading{}
			from := int(first-1) + r.IntN(len(events)-int(first-1)+1)
			if r.IntN(2) == 0 {
				from = int(first - 1)
			}
			d = fromLog.take(t, a, d, events[first-1:from], int64(from), false)
			i, _ := slices.BinarySearchFunc(compacted, int64(from)+1, func(e event.Event, seq int64) int { return int(e.Seq - seq) })
			d = fromLog.take(t, a, d, compacted[i:], head, true)
			if d.String() != final {
				t.Fatalf("after %d, raw to %d, from the compacted log:\n%s\nwant\n%s", c.number, from, d, final)
			}
			replaced += len(fromLog.states)
		}
	})
	if replaced == 0 {
		t.Error("no client got anything of a compacted log")
	}
}

func nonEmpty(texts map[string]string) map[string]string {
	texts = maps.Clone(texts)
	maps.DeleteFunc(texts, func(_, text string) bool { return text == "" })
	return texts
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
