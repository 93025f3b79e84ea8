package journaltest

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Writer generates a valid log, as a conversation's writer would produce it: offsets match, a turn ends once, and nothing
// follows its end. Pick returns a number from 0 to n-1. It is the only source of randomness, so a test with a fixed Pick is reproducible, and
// rapid can shrink a failing log.
//
// The caller appends the events that Next returns, in the same order. The generated logs contain what compaction and encoding find difficult:
// updates of old messages, retracts, truncates, parts that grow at the same time, and texts with characters that JSON escapes.
type Writer struct {
	Pick func(n int) int
	// WholeTexts omits truncates, after which a reader would need a snapshot.
	WholeTexts bool
	// Open is the number of running turns. The log may be compacted only if it is 0.
	Open int
	// Log contains all events so far.
	Log []event.Event

	t       transcript.Transcript // fold of Log
	ids     int                   // ids generated so far
	turn    string                // id of the running turn, or ""
	message string                // id of its message
	parts   []string
}

var words = []string{"leat ", "water\n", "\"quote\" \\ ", "naïve ", "🌊 ", "日本語 ", "a\u2028b ", "<&> ", "\x00", "tab\t", "stone ", "mill wheel turns "}

// text returns a random text with characters that are difficult to encode.
func (w *Writer) text() string {
	s := ""
	for range 1 + w.Pick(4) {
		s += words[w.Pick(len(words))]
	}
	return s
}

func (w *Writer) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s%d", kind, w.ids)
}

// add assigns the seq and the time of an event and appends it to the log. It folds the event, because the next events depend on the
// transcript: offsets are the lengths of its texts.
func (w *Writer) add(e event.Event) {
	e.Seq = int64(len(w.Log) + 1)
	e.At = 1_700_000_000_000 + e.Seq*17
	if err := w.t.Apply(&e); err != nil {
		panic(err) // a fault of the writer
	}
	w.Log = append(w.Log, e)
}

// Next appends up to three events and returns them. It may return none. The slice is part of Log and must not be changed.
func (w *Writer) Next() []event.Event {
	from := len(w.Log)
	if w.turn == "" {
		w.idle()
	} else {
		w.stepTurn()
	}
	return w.Log[from:]
}

// Finish ends the running turn.
func (w *Writer) Finish() []event.Event {
	from := len(w.Log)
	if w.turn != "" {
		w.end()
	}
	return w.Log[from:]
}

// idle appends an event that may occur between turns, or starts a turn. Starting a turn is the most likely case, so that most
// events belong to turns as in real logs.
func (w *Writer) idle() {
	switch n := w.Pick(20); {
	case n == 0 && !w.WholeTexts:
		last := ""
		if len(w.t.Messages) > 0 && w.Pick(4) > 0 {
			last = w.t.Messages[w.Pick(len(w.t.Messages))].ID
		}
		w.add(event.Event{Type: event.ConversationTruncate, Message: last})
	case n == 1:
		title := w.text()
		w.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{
			Title: &title, Metadata: map[string]json.RawMessage{fmt.Sprintf("k%d", w.Pick(3)): json.RawMessage(`{"v":` + fmt.Sprint(w.Pick(9)) + `}`)},
		}})
	case n == 2:
		w.add(event.Event{Type: event.Record, Body: &event.Body{RecordKind: "note", Data: json.RawMessage(`{"n":1}`)}})
	case n <= 4 && len(w.t.Messages) > 0: // a late update or a retract of an older message
		m := w.t.Messages[w.Pick(len(w.t.Messages))]
		if len(m.Parts) == 0 {
			return
		}
		p := m.Parts[w.Pick(len(m.Parts))]
		if n == 3 {
			w.add(event.Event{Type: event.PartUpdate, Message: m.ID, Part: p.ID, Body: &event.Body{Media: &event.Media{URL: w.id("https://leat.test/")}}})
		} else {
			w.add(event.Event{Type: event.PartReplace, Message: m.ID, Part: p.ID})
		}
	default:
		user := w.id("m")
		w.add(event.Event{Type: event.MessageAdd, Message: user, Body: &event.Body{
			Role: event.User, Author: &event.Author{ID: "u", Name: "Ü"}, Parts: []event.Part{{Kind: event.KindText, Text: w.text()}},
		}})
		w.turn, w.message, w.parts = w.id("t"), w.id("m"), nil
		w.Open++
		w.add(event.Event{Type: event.TurnStart, Turn: w.turn, Body: &event.Body{Agent: "demo", Answers: user}})
		w.add(event.Event{Type: event.MessageStart, Turn: w.turn, Message: w.message, Body: &event.Body{Role: event.Assistant}})
	}
}

// stepTurn appends one event to the running turn: usually text of a random part, sometimes a new part, or the end. A final part
// accepts only a retract, so it is exchanged for the newest part, which may be final too.
func (w *Writer) stepTurn() {
	n := w.Pick(24)
	if len(w.parts) == 0 || n == 0 {
		p := w.id("p")
		w.parts = append(w.parts, p)
		kind := []event.PartKind{event.KindText, event.KindText, event.KindTool, event.KindStatus, event.KindReasoning}[w.Pick(5)]
		w.add(event.Event{Type: event.PartStart, Turn: w.turn, Message: w.message, Part: p, Body: &event.Body{Kind: kind, Join: event.JoinBlank}})
		return
	}
	m := w.t.Message(w.message)
	p := m.Part(w.parts[w.Pick(len(w.parts))])
	if p.Final {
		p = m.Part(w.parts[len(w.parts)-1])
	}
	e := event.Event{Turn: w.turn, Message: w.message, Part: p.ID}
	switch {
	case n == 1:
		w.end()
	case n == 2:
		w.add(event.Event{Type: event.TurnUpdate, Turn: w.turn, Body: &event.Body{Phase: []string{"starting", "retrying"}[w.Pick(2)], Step: w.Pick(3)}})
	case n == 3 && !p.Final:
		e.Type, e.Body = event.PartEnd, &event.Body{Sums: map[string]event.Sum{"text": p.Sum(event.Text)}}
		w.add(e)
	case n == 4:
		e.Type, e.Body = event.PartUpdate, &event.Body{State: event.PartRunning}
		w.add(e)
	case p.Final:
		e.Type = event.PartReplace // a retract
		w.add(e)
	case p.Kind == event.KindStatus:
		e.Type, e.Text = event.PartReplace, w.text()
		if w.Pick(4) == 0 {
			e.Type, e.Offset = event.PartAppend, int64(p.Len(event.Text))
		}
		e.Note = []string{"looking", "found", "done", ""}[w.Pick(4)]
		e.Extend = e.Note != "" && w.Pick(3) == 0
		w.add(e)
	case n == 5:
		e.Type, e.Text = event.PartReplace, w.text()
		w.add(e)
	default:
		if p.Kind == event.KindTool {
			e.Field = []event.Field{event.Text, event.Input, event.Output}[w.Pick(3)]
		}
		e.Type, e.Offset, e.Text = event.PartAppend, int64(p.Len(e.Field)), w.text()
		w.add(e)
	}
}

// end ends the running turn. Its parts stay open, because a turn's end ends them as well.
func (w *Writer) end() {
	w.add(event.Event{Type: event.MessageEnd, Turn: w.turn, Message: w.message, Body: &event.Body{Reason: "stop"}})
	w.add(event.Event{Type: event.TurnEnd, Turn: w.turn, Body: &event.Body{Outcome: event.Completed, Usage: &event.Usage{Input: 3, Output: int64(w.Pick(99))}}})
	w.turn = ""
	w.Open--
}
