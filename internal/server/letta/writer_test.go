package letta

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/answer/answertest"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

// client folds frames as Letta's clients do: texts and arguments by their ids.
type client struct {
	texts   map[string]string // of messages and calls
	visible string            // of the texts, without white space
	returns map[string]string
	seq     int64 // of the last frame
	stop    string
	failure string
}

func newClient() *client { return &client{texts: map[string]string{}, returns: map[string]string{}} }

// read folds frames, up to a number of them. It reports whether there were more.
func (c *client) read(t *testing.T, stream []byte, limit int) (isCut bool) {
	t.Helper()
	err := (&sse.Reader{}).Feed(stream, func(e sse.Event) error {
		if limit--; limit < 0 {
			isCut = true
		}
		if isCut || string(e.Data) == "[DONE]" {
			return nil
		}
		var m struct { // message can't be decoded, because of its usage
			Type      string  `json:"message_type"`
			Otid      string  `json:"otid"`
			SeqID     int64   `json:"seq_id"`
			Content   string  `json:"content"`
			Reasoning string  `json:"reasoning"`
			Call      *call   `json:"tool_call"`
			CallID    string  `json:"tool_call_id"`
			Return    *string `json:"tool_return"`
			Stop      string  `json:"stop_reason"`
			Message   string  `json:"message"`
		}
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return err
		}
		if m.SeqID != 0 && m.Type != typePing {
			if m.SeqID <= c.seq {
				t.Fatalf("seq_id %d after %d:\n%s", m.SeqID, c.seq, stream)
			}
			c.seq = m.SeqID
		}
		switch m.Type {
		case typeAssistant, typeReasoning:
			c.texts[m.Otid] += m.Content + m.Reasoning
			c.visible += withoutSpace(m.Content)
		case typeCall:
			c.texts[m.Call.ID] += m.Call.Arguments
		case typeReturn:
			if _, isSecond := c.returns[m.CallID]; isSecond {
				t.Fatalf("a second result of %s:\n%s", m.CallID, stream)
			}
			c.returns[m.CallID] = *m.Return
		case typeStop:
			c.stop = m.Stop
		case typeError:
			c.failure = m.Message
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return isCut
}

// write writes the frames of a log after a seq_id, with its events in random batches. Neighbouring appends are merged as a feed merges them, but not
// across the place where the client resumes.
func write(t *testing.T, r *rand.Rand, events []event.Event, first, after int64) (stream []byte, turn *transcript.Turn) {
	t.Helper()
	w := newWriter(answertest.Turn, after, false)
	a := answer.New(answertest.Turn, first, resumeNumber(after))
	for a.Upto() < int64(len(events)) && !a.HasEnded() {
		end := min(int64(len(events)), a.Upto()+1+r.Int64N(8))
		if a.Upto() < a.ResumeSeq() {
			end = min(end, a.ResumeSeq())
		}
		batch := merged(events[a.Upto():end])
		if err := a.Apply(batch, end, false, func(op *answer.Op) error { return w.apply(a, op) }); err != nil {
			t.Fatal(err)
		}
	}
	if a.HasEnded() {
		w.end(a.Turn())
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.take(), a.Turn()
}

// withoutSpace returns a text without white space.
func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// merged joins neighbouring appends to one text, as a feed does for a slow reader.
func merged(events []event.Event) (list []event.Event) {
	for _, e := range events {
		if n := len(list); n > 0 && e.Type == event.PartAppend && list[n-1].Type == event.PartAppend && e.Note == "" && list[n-1].Note == "" &&
			list[n-1].Message == e.Message && list[n-1].Part == e.Part && list[n-1].Field == e.Field {
			last := &list[n-1]
			if last.MergedFrom == 0 {
				last.MergedFrom = last.Seq
			}
			last.Text += e.Text
			last.Seq = e.Seq
			continue
		}
		list = append(list, e)
	}
	return list
}

// However a log is merged, and wherever a client is cut, after a resume it has the same texts as one that was never cut.
func TestWriter(t *testing.T) {
	cuts, failures, whole := 0, 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		events, first := answertest.Log(t, r)
		calm, turn := newClient(), (*transcript.Turn)(nil)
		stream, turn := write(t, r, events, first, 0)
		calm.read(t, stream, 1<<30)
		c := newClient()
		for {
			stream, _ := write(t, r, events, first, c.seq)
			if !c.read(t, stream, 1+r.IntN(12)) {
				break
			}
			cuts++
		}
		if calm.failure != c.failure || calm.stop != c.stop {
			// A client that was cut may have got nothing of a text that was taken back, but not the other way round.
			if calm.failure != "" && c.failure == "" && calm.failure != textReplaced {
				t.Fatalf("seed %d: %q and %q", seed, calm.failure, c.failure)
			}
		}
		if turn.Outcome != event.Completed || calm.failure != "" || c.failure != "" {
			failures++
			continue
		}
		whole++
		if d := cmp.Diff(calm, c, cmp.AllowUnexported(client{})); d != "" {
			t.Fatalf("seed %d: (-calm +cut)\n%s", seed, d)
		}
		var fold transcript.Transcript
		for i := range events {
			if err := fold.Apply(&events[i]); err != nil {
				t.Fatal(err)
			}
		}
		visible := ""
		for _, m := range fold.Messages {
			if m.Turn != answertest.Turn {
				continue
			}
			for _, p := range m.Parts {
				if p.Kind == event.KindText || p.Kind == event.KindStatus {
					visible += withoutSpace(p.Text(event.Text))
				}
				if id := callID(m.ID, p.ID); p.Kind == event.KindTool && (c.returns[id] == "" && strings.TrimSpace(*returnOf(m.ID, p).Return) != "") {
					t.Fatalf("seed %d: no result of %s", seed, id)
				}
			}
		}
		// Separators belong to no part, and a text that is one may be the client's separator.
		if c.visible != visible {
			t.Fatalf("seed %d: the text is %q, want %q", seed, c.visible, visible)
		}
	}
	t.Logf("%d cuts, %d failures, %d whole answers", cuts, failures, whole)
	if cuts == 0 || failures == 0 || whole == 0 {
		t.Error("no log reached the interesting states")
	}
}

// Text that continues after a tool or a request is a new message, because Letta Code has finished the one before. A status that is sent late is not.
func TestContinuedText(t *testing.T) {
	part := func(kind event.Type, id, text string, body *event.Body) event.Event {
		return event.Event{Type: kind, Message: "m", Part: id, Text: text, Body: body}
	}
	events := []event.Event{
		{Type: event.TurnStart},
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		part(event.PartStart, "t", "", &event.Body{Kind: event.KindText}),
		part(event.PartAppend, "t", "before", nil),
		part(event.PartStart, "s", "", &event.Body{Kind: event.KindStatus}),
		part(event.PartStart, "c", "", &event.Body{Kind: event.KindTool, Name: "clock", Call: "c"}),
		part(event.PartAppend, "t", "after", nil),
		part(event.PartAppend, "t", " it", nil),
		{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "r", Kind: event.RequestInput}}},
		{Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: "r", Text: "yes"}}},
		part(event.PartAppend, "t", "end", nil),
		part(event.PartReplace, "s", "status", nil),
		part(event.PartEnd, "s", "", nil),
		{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}},
	}
	length := int64(0) // of t
	for i := range events {
		e := &events[i]
		e.Seq, e.Turn = int64(i+1), answertest.Turn
		if e.Type == event.PartAppend {
			e.Offset, length = length, length+int64(len(e.Text))
		}
	}
	w, a := newWriter(answertest.Turn, 0, true), answer.New(answertest.Turn, 1, -1)
	if err := a.Apply(events, int64(len(events)), false, func(op *answer.Op) error { return w.apply(a, op) }); err != nil {
		t.Fatal(err)
	}
	c := newClient()
	c.read(t, w.take(), 1<<30)
	delete(c.texts, requestCallID(answertest.Turn, "r"))
	want := map[string]string{"m.t": "before", "m.t.2": "after it", "m.t.3": "end", "m.s": "status"}
	delete(c.texts, callID("m", "c"))
	if d := cmp.Diff(want, c.texts); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
