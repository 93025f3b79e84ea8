package inspection

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// recordingDialect is the dialect of recordings that are made of the log: Leat's own.
const recordingDialect = "leat"

// WriteLogRecording writes the events of a turn as a recording in Leat's own dialect. It doesn't need the capture, and can be replayed
// whatever dialect the agent used. While the trace of the turn is kept, the recording has the original pieces and times; later each text
// is one piece. Readers of the turn may have it, because it has nothing that they can't see.
func (in *Inspector) WriteLogRecording(ctx context.Context, p gateway.Principal, turn string, w io.Writer) error {
	conversation, t, err := in.gateway.Turn(ctx, p, gateway.ActionRead, turn)
	if err != nil {
		return err
	}
	x := turnRecording{turns: map[string]bool{turn: true}, messages: map[string]bool{}}
	if err := in.eachEvent(ctx, conversation, x.add); err != nil {
		return err
	}
	// Turns inside the turn belong to its recording, so their traces are needed as well. A trace that has expired is no error: the
	// log then has merged texts.
	for id := range x.turns {
		trace, err := in.journal.Trace(ctx, conversation, id)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return gateway.JournalError("look up trace", err)
		}
		x.restoreSteps(id, &trace)
	}
	// The restored operations were appended at the end. Their seqs say where they belong.
	slices.SortStableFunc(x.events, func(a, b event.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	recording := recordings.Writer{Output: w, Client: "turn"}
	// The recording begins with its first event, so that a replay doesn't wait for the time that the turn was queued.
	begin, last := int64(0), int64(0)
	if len(x.events) > 0 {
		begin, last = x.events[0].At, x.events[0].At
	}
	if err := recording.Open(begin, recordings.Head{Turn: turn, Conversation: conversation, Agent: t.Agent, Kind: in.kindOf(t.Agent, p), Dialect: recordingDialect}); err != nil {
		return err
	}
	for i := range x.events {
		b, err := x.events[i].AppendJSON(nil)
		if err != nil {
			return err
		}
		last = max(last, x.events[i].At)
		if err := recording.Message(x.events[i].At, false, b); err != nil {
			return err
		}
	}
	return recording.Close(last)
}

// turnRecording collects the events of a turn and of the turns inside it.
type turnRecording struct {
	turns    map[string]bool
	messages map[string]bool // that the turns added
	events   []event.Event
	fold     transcript.Transcript
}

// add takes an event of the log. It is called with all of them, in order.
func (x *turnRecording) add(e *event.Event) error {
	b := e.Get()
	// An inner turn starts after the turn around it, so one pass finds inner turns of inner turns too.
	if e.Type == event.TurnStart && x.turns[b.Parent] {
		x.turns[e.Turn] = true
	}
	if err := x.fold.Apply(e); err != nil || !x.turns[e.Turn] {
		return err
	}
	switch e.Type {
	case event.TurnQueue:
		return nil // written by the gateway, not by the agent
	case event.MessageStart, event.MessageAdd:
		if b.Role == event.User {
			return nil // a user's message that steered the turn
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

// stretch is the value of a text until a replace. If isLost is set, the trace no longer has it.
type stretch struct {
	endSeq int64 // seq of the replace
	text   string
	isLost bool
}

// restoreSteps replaces the merged operations of a turn's texts by the original ones, if the trace has them.
func (x *turnRecording) restoreSteps(turn string, t *journal.Trace) {
	if len(t.Commits) == 0 {
		return
	}
	// Only the operations on texts are in a trace. Everything else of the turn stays as it is in the log.
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
		values := texts[k]
		// The commits are in order of seq, so a value that has ended is never needed again.
		for len(values) > 1 && values[0].endSeq <= c.Seq {
			values = values[1:]
		}
		texts[k] = values
		// An operation whose text is lost is left out. The next replace gives the text its full value again.
		if len(values) == 0 || values[0].isLost || e.Offset > c.End || c.End > int64(len(values[0].text)) {
			continue
		}
		e.Text = values[0].text[e.Offset:c.End]
		lasts[k] = len(x.events)
		x.events = append(x.events, e)
	}
	for k, i := range lasts {
		if p := x.part(k); p != nil && k.field == string(event.Text) {
			x.events[i].History = p.History() // the trace does not say which operation added it
		}
	}
}

// stretches returns the values that each text of a turn had, in order.
func (x *turnRecording) stretches(t *journal.Trace) map[textKey][]stretch {
	texts := map[int64]string{} // texts by the seq of the replace
	for _, r := range t.Replacements {
		texts[r.Seq] = r.Text
	}
	stretches, ends := map[textKey][]stretch{}, map[textKey]int64{}
	for _, c := range t.Commits {
		k := textKey{c.Message, c.Part, c.Field}
		if c.Type == event.PartReplace {
			if text, ok := texts[c.Seq]; ok {
				stretches[k] = append(stretches[k], stretch{endSeq: c.Seq, text: text})
			} else if ends[k] > 0 && ends[k] != c.End {
				stretches[k] = append(stretches[k], stretch{endSeq: c.Seq, isLost: true})
			}
		}
		if c.Type == event.PartReplace || c.Type == event.PartAppend {
			ends[k] = c.End
		}
	}
	for k := range ends {
		if p := x.part(k); p != nil {
			stretches[k] = append(stretches[k], stretch{endSeq: math.MaxInt64, text: p.Text(event.Field(k.field))})
		}
	}
	return stretches
}

// part returns the part of a text as the whole log leaves it, or nil if the log no longer has it.
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

// WriteRecording writes the captured bytes of a turn as a recording, which can be replayed. If it returns [gateway.ErrNotFound],
// [gateway.ErrForbidden] or [gateway.ErrNotKept], it has written nothing.
func (in *Inspector) WriteRecording(ctx context.Context, p gateway.Principal, turn string, w io.Writer) error {
	if _, _, err := in.gateway.Turn(ctx, p, gateway.ActionInspect, turn); err != nil {
		return err
	}
	return in.writeRecording(ctx, turn, w)
}

// writeRecording converts the capture of a turn to a recording. The capture names the dialect of each response; for an agent
// without a response body the kind is the dialect, if there is one of that name. A body is written in pieces as it arrived, and
// messages one by one. Bytes that the capture has lost become a gap.
func (in *Inspector) writeRecording(ctx context.Context, turn string, w io.Writer) error {
	recording := recordings.Writer{Output: w, Client: "turn"}
	var head recordings.Head
	body, at := false, int64(0)
	err := in.captures.Read(ctx, turn, func(e capture.Entry) error {
		at = e.At
		switch e.Kind {
		case capture.KindBegin:
			head = recordings.Head{Turn: e.Meta.Turn, Conversation: e.Meta.Conversation, Agent: e.Meta.Agent, Kind: e.Meta.Kind}
			if _, err := in.dialects.Lookup(e.Meta.Kind); err == nil {
				head.Dialect = e.Meta.Kind
			}
			body = false
			return recording.Open(e.At, head)
		case capture.KindStream, capture.KindMessages:
			head.Dialect, body = string(e.Data), e.Kind == capture.KindStream
			return recording.Open(e.At, head)
		case capture.KindLost:
			return recording.Gap(e.At, e.N)
		case capture.KindSent, capture.KindReceived:
			if isSent := e.Kind == capture.KindSent; isSent || !body {
				return recording.Message(e.At, isSent, e.Data)
			}
			return recording.Piece(e.At, false, e.Data)
		}
		return nil // the agent may have been called again after its end
	})
	if errors.Is(err, capture.ErrNotKept) {
		return gateway.ErrNotKept
	}
	return cmp.Or(err, recording.Close(at))
}
