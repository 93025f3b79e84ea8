package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// toldDialect is that of recordings made of the log: Leat's own.
const recordingDialect = "leat"

// WriteTold writes what the log has of a turn as a recording in Leat's own dialect, which can be replayed whatever the agent
// spoke and whether or not its bytes are kept. It comes at its own pace as far as the turn's trace is kept; else each text
// comes at once, as the log has it. Whoever may read the turn may have it: it holds nothing that readers were not shown.
func (g *Gateway) WriteLogRecording(ctx context.Context, p Principal, turn string, w io.Writer) error {
	conversation, t, err := g.Turn(ctx, p, ActionRead, turn)
	if err != nil {
		return err
	}
	x := turnRecording{turns: map[string]bool{turn: true}, messages: map[string]bool{}}
	if err := g.eachEvent(ctx, conversation, x.add); err != nil {
		return err
	}
	for id := range x.turns {
		trace, err := g.journal.Trace(ctx, conversation, id)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return JournalError("look up trace", err)
		}
		x.restoreSteps(id, &trace)
	}
	slices.SortStableFunc(x.events, func(a, b event.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	a, _ := g.agent(t.Agent, behalf(p))
	out := recordings.NewWriter(w, "turn")
	begin, last := int64(0), int64(0)
	if len(x.events) > 0 {
		begin, last = x.events[0].At, x.events[0].At
	}
	if err := out.Open(begin, recordings.Head{Turn: turn, Conversation: conversation, Agent: t.Agent, Kind: a.Kind, Dialect: recordingDialect}); err != nil {
		return err
	}
	for i := range x.events {
		b, err := x.events[i].AppendJSON(nil)
		if err != nil {
			return err
		}
		last = max(last, x.events[i].At)
		if err := out.Message(x.events[i].At, false, b); err != nil {
			return err
		}
	}
	return out.Close(last)
}

// told gathers what the log has of a turn and of those inside it.
type turnRecording struct {
	turns    map[string]bool
	messages map[string]bool // that began in them
	events   []event.Event
	fold     transcript.Transcript
}

// take is told of each event of the log, in order.
func (x *turnRecording) add(e *event.Event) error {
	b := e.Get()
	if e.Type == event.TurnStart && x.turns[b.Parent] {
		x.turns[e.Turn] = true
	}
	if err := x.fold.Apply(e); err != nil || !x.turns[e.Turn] {
		return err
	}
	switch e.Type {
	case event.TurnQueue:
		return nil // it is the gateway's
	case event.MessageStart, event.MessageAdd:
		if b.Role == event.User {
			return nil // a person's, who steered it
		}
		x.messages[e.Message] = true
	}
	if e.Message == "" || x.messages[e.Message] {
		x.events = append(x.events, *e)
	}
	return nil
}

// textKey names a text.
type textKey struct{ message, part, field string }

// stretch is a text between two replaces, the second of which took it back; lost where it is not kept.
type stretch struct {
	until int64 // seq of that replace
	text  string
	lost  bool
}

// spread puts the single operations of a turn's texts, as its trace tells of them, in the place of those that the log has merged.
func (x *turnRecording) restoreSteps(turn string, t *journal.Trace) {
	if len(t.Commits) == 0 {
		return
	}
	x.events = slices.DeleteFunc(x.events, func(e event.Event) bool { return e.Turn == turn && e.Op() })
	texts := x.stretches(t)
	ends, lasts := map[textKey]int64{}, map[textKey]int{}
	for _, c := range t.Commits {
		e := event.Event{Seq: c.Seq, At: c.Arrival, Type: c.Type, Turn: turn, Message: c.Message, Part: c.Part, Field: event.Field(c.Field)}
		if !e.Op() || !x.messages[c.Message] {
			continue
		}
		k := textKey{c.Message, c.Part, c.Field}
		if e.Offset = ends[k]; e.Type == event.PartReplace {
			e.Offset = 0
		}
		ends[k] = c.End
		now := texts[k]
		for len(now) > 1 && now[0].until <= c.Seq {
			now = now[1:]
		}
		texts[k] = now
		if len(now) == 0 || now[0].lost || e.Offset > c.End || c.End > int64(len(now[0].text)) {
			continue
		}
		e.Text = now[0].text[e.Offset:c.End]
		lasts[k] = len(x.events)
		x.events = append(x.events, e)
	}
	for k, i := range lasts {
		if p := x.part(k); p != nil && k.field == string(event.Text) {
			x.events[i].History = p.History() // which one of them brought is not known
		}
	}
}

// stretches are the texts of a turn, in order of their ends.
func (x *turnRecording) stretches(t *journal.Trace) map[textKey][]stretch {
	back := map[int64]string{}
	for _, r := range t.Replaced {
		back[r.Seq] = r.Text
	}
	out, ends := map[textKey][]stretch{}, map[textKey]int64{}
	for _, c := range t.Commits {
		k := textKey{c.Message, c.Part, c.Field}
		if c.Type == event.PartReplace {
			if text, kept := back[c.Seq]; kept {
				out[k] = append(out[k], stretch{until: c.Seq, text: text})
			} else if ends[k] > 0 && ends[k] != c.End {
				out[k] = append(out[k], stretch{until: c.Seq, lost: true})
			}
		}
		if c.Type == event.PartReplace || c.Type == event.PartAppend {
			ends[k] = c.End
		}
	}
	for k := range ends {
		if p := x.part(k); p != nil {
			out[k] = append(out[k], stretch{until: math.MaxInt64, text: p.Text(event.Field(k.field))})
		}
	}
	return out
}

func (x *turnRecording) part(k textKey) *transcript.Part {
	m := x.fold.Message(k.message)
	if m == nil {
		return nil
	}
	i := slices.IndexFunc(m.Parts, func(p *transcript.Part) bool { return p.ID == k.part })
	if i < 0 {
		return nil
	}
	return m.Parts[i]
}
