package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

func TestUnmerge(t *testing.T) {
	written := []event.Event{
		{Seq: 1, At: 1, Type: event.TurnStart, Turn: "t"},
		{Seq: 2, At: 2, Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Seq: 3, At: 3, Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindStatus}},
		{Seq: 4, At: 4, Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Text: "Loo"},
		{Seq: 5, At: 5, Type: event.TurnUpdate, Turn: "t", Body: &event.Body{Phase: "one"}},
		{Seq: 6, At: 6, Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: 3, Text: "king"},
		{Seq: 7, At: 7, Type: event.PartReplace, Turn: "t", Message: "m", Part: "p", Text: "Pla"},
		{Seq: 8, At: 8, Type: event.TurnUpdate, Turn: "t", Body: &event.Body{Phase: "two"}},
		{Seq: 9, At: 9, Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: 3, Text: "ying"},
		{Seq: 10, At: 10, Type: event.TurnEnd, Turn: "t", Body: &event.Body{Outcome: event.Completed}},
	}
	update := written[7]
	update.MergedFrom = 5
	trace := journal.Trace{Turn: "t", Replacements: []journal.TraceReplace{{Seq: 7, Message: "m", Part: "p", Text: "Looking"}}}
	for _, e := range written {
		c := journal.TraceCommit{Arrival: e.At, Seq: e.Seq, Type: e.Type, Message: e.Message, Part: e.Part}
		if e.Op() {
			c.End = e.Offset + int64(len(e.Text))
		}
		trace.Commits = append(trace.Commits, c)
	}
	with := func(change func(*journal.Trace)) journal.Trace {
		c := trace
		change(&c)
		return c
	}
	without := func(seqs ...int) (events []event.Event) {
		for _, e := range written {
			if e.Seq == update.Seq {
				e = update
			}
			isLeftOut := false
			for _, seq := range seqs {
				isLeftOut = isLeftOut || int64(seq) == e.Seq
			}
			if !isLeftOut {
				events = append(events, e)
			}
		}
		return events
	}
	for name, c := range map[string]struct {
		trace journal.Trace
		want  []event.Event // nil if the trace is another one
	}{
		"all":                              {trace, without(5)},
		"without what was replaced":        {with(func(t *journal.Trace) { t.Replacements = nil }), nil},
		"of another text":                  {with(func(t *journal.Trace) { t.Commits = append(t.Commits[:8:8], t.Commits[9]) }), nil},
		"without the start of the message": {with(func(t *journal.Trace) { t.Commits = t.Commits[2:] }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.trace.Unmerge(transcript.Compact(written))
			if ok != (c.want != nil) {
				t.Fatalf("ok %v", ok)
			}
			if d := cmp.Diff(c.want, got); ok && d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
