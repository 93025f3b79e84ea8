package feed

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/leat-dev/leat/event"
)

// writer generates a conversation event by event, as agents, users and the gateway would.
type writer struct {
	r      *rand.Rand
	o      *oracle // of what is written
	epoch  int
	n      int      // ids given
	turn   string   // running
	child  string   // running inside it
	queued []string // turns
}

func (w *writer) clone() *writer {
	c := *w
	c.o, c.queued = w.o.clone(), slices.Clone(w.queued)
	return &c
}

func (w *writer) id(kind string) string {
	w.n++
	return fmt.Sprintf("%s%d.%d", kind, w.n, w.epoch)
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// runes contains characters of each UTF-8 length, and those that JSON escapes.
var runes = []rune("abcdefghij \n\"\\<é€𝄞\u2028")

func (w *writer) text(least, most int) string {
	t := make([]rune, least+w.r.IntN(most-least+1))
	for i := range t {
		t[i] = pick(w.r, runes...)
	}
	return string(t)
}

// next returns the next few events, which belong to one commit.
func (w *writer) next() []event.Event {
	if w.turn == "" {
		return w.between()
	}
	turn, x := w.turn, w.r.IntN(100)
	if w.child != "" {
		turn = w.child
	}
	switch {
	case x < 4:
		return w.conversation()
	case x < 9:
		q, m := w.id("t"), w.id("u")
		w.queued = append(w.queued, q)
		return []event.Event{
			w.userMessage(m),
			{Type: event.TurnQueue, Turn: q, Body: &event.Body{Agent: "demo", Answers: m}},
			{Type: event.MessageUpdate, Message: m, Turn: q, Body: &event.Body{MessageState: event.MessageQueued}},
		}
	case x < 14:
		return []event.Event{{Type: event.TurnUpdate, Turn: turn, Body: pick(w.r, &event.Body{Phase: w.text(1, 3)}, &event.Body{Upstream: &event.Upstream{Run: w.text(1, 3)}})}}
	case x < 19:
		if open := w.o.turns[turn].requests; len(open) > 0 {
			return []event.Event{{Type: event.TurnResume, Turn: turn, Body: &event.Body{Answer: &event.Answer{ID: pick(w.r, open...), Decision: event.Approve}}}}
		}
		return []event.Event{{Type: event.TurnWait, Turn: turn, Body: &event.Body{Request: &event.Request{ID: w.id("r"), Kind: event.RequestApproval}}}}
	case x < 22 && w.child == "":
		w.child = w.id("t")
		return []event.Event{{Type: event.TurnStart, Turn: w.child, Body: &event.Body{Parent: w.turn}}}
	case x < 26 && w.child != "":
		w.child = ""
		return []event.Event{{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Completed}}}
	case x < 30:
		var end []event.Event
		if w.child != "" {
			end = append(end, event.Event{Type: event.TurnEnd, Turn: w.child, Body: &event.Body{Outcome: event.Cancelled}})
		}
		end = append(end, event.Event{Type: event.TurnEnd, Turn: w.turn, Body: &event.Body{Outcome: pick(w.r, event.Completed, event.Failed)}})
		w.turn, w.child = "", ""
		return end
	case x < 36 && len(w.o.order) > 0:
		return w.afterwards()
	}
	var open []*oracleMessage
	for _, id := range w.o.order {
		if m := w.o.messages[id]; m.turn == turn && !m.ended {
			open = append(open, m)
		}
	}
	if len(open) == 0 || x < 40 {
		return []event.Event{{Type: event.MessageStart, Turn: turn, Message: w.id("a"), Body: &event.Body{Role: event.Assistant}}}
	}
	m := pick(w.r, open...)
	if x < 42 {
		return []event.Event{{Type: event.MessageEnd, Turn: turn, Message: m.id, Body: &event.Body{Reason: "stop"}}}
	}
	return w.part(m, turn)
}

// between generates events while no turn is running.
func (w *writer) between() []event.Event {
	x := w.r.IntN(100)
	switch {
	case x < 30:
		return []event.Event{w.userMessage(w.id("u"))}
	case x < 40 && len(w.o.order) > 0 && len(w.queued) == 0:
		last := pick(w.r, w.o.order...)
		if w.r.IntN(8) == 0 {
			last = ""
		}
		return []event.Event{{Type: event.ConversationTruncate, Message: last}}
	case x < 45:
		return w.conversation()
	case x < 53 && len(w.o.order) > 0:
		return []event.Event{{Type: event.MessageUpdate, Message: pick(w.r, w.o.order...), Body: &event.Body{MessageState: pick(w.r, event.MessageStarted, event.MessageJoined)}}}
	case x < 68 && len(w.o.order) > 0:
		return w.afterwards()
	case len(w.queued) > 0:
		w.turn, w.queued = w.queued[0], w.queued[1:]
		return []event.Event{{Type: event.TurnStart, Turn: w.turn}}
	}
	w.turn = w.id("t")
	if w.r.IntN(4) == 0 {
		return []event.Event{{Type: event.TurnStart, Turn: w.turn, Body: &event.Body{Agent: "demo"}}} // without being asked
	}
	m := w.id("u")
	return []event.Event{w.userMessage(m), {Type: event.TurnStart, Turn: w.turn, Body: &event.Body{Agent: "demo", Answers: m}}}
}

func (w *writer) userMessage(id string) event.Event {
	b := &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: w.text(1, 5)}}}
	if w.r.IntN(3) == 0 {
		b.Parts = append(b.Parts, event.Part{Kind: event.KindText, Text: w.text(1, 5)})
	}
	return event.Event{Type: event.MessageAdd, Message: id, Body: b}
}

func (w *writer) conversation() []event.Event {
	b := &event.Body{}
	if w.r.IntN(2) == 0 {
		title := w.text(0, 3)
		b.Title = &title
	} else {
		b.Metadata = map[string]json.RawMessage{pick(w.r, "k", "l"): pick(w.r, json.RawMessage(`1`), json.RawMessage(`{"a":"b"}`), json.RawMessage(`null`))}
	}
	return []event.Event{{Type: event.ConversationUpdate, Body: b}}
}

// part generates an event of a message whose turn is running.
func (w *writer) part(m *oracleMessage, turn string) []event.Event {
	var open []*oraclePart
	for _, p := range m.parts {
		if !p.ended {
			open = append(open, p)
		}
	}
	if len(open) == 0 || w.r.IntN(8) == 0 {
		return []event.Event{{Type: event.PartStart, Turn: turn, Message: m.id, Part: fmt.Sprintf("p%d", len(m.parts)+1), Body: &event.Body{
			Kind: pick(w.r, event.KindText, event.KindText, event.KindStatus, event.KindTool, event.KindReasoning), Join: pick(w.r, "", event.JoinBlank),
		}}}
	}
	p := pick(w.r, open...)
	e := event.Event{Turn: turn, Message: m.id, Part: p.id}
	switch x := w.r.IntN(100); {
	case x < 7:
		e.Type, e.Body = event.PartEnd, &event.Body{Sums: sums(p)}
		return []event.Event{e}
	case p.kind == event.KindTool && x < 40:
		title := w.text(0, 3)
		e.Type, e.Body = event.PartUpdate, pick(w.r, &event.Body{State: pick(w.r, event.PartRunning, event.PartDone)}, &event.Body{Title: &title})
		return []event.Event{e}
	}
	if p.kind == event.KindTool {
		e.Field = pick(w.r, event.Input, event.Output)
	}
	replace := 25
	if p.kind == event.KindStatus {
		replace = 60
		e.Note = pick(w.r, "", "a", "b", "a b")
		if w.r.IntN(6) == 0 {
			e.Field = event.Stderr // no dialect does so, but nothing forbids it
		}
	}
	if w.r.IntN(100) < replace {
		e.Type, e.Text = event.PartReplace, w.text(0, 9)
	} else {
		e.Type, e.Text, e.Offset = event.PartAppend, w.text(1, 6), int64(len(p.fields[e.Field.Name()]))
	}
	return []event.Event{e}
}

// afterwards generates an event of any message that belongs to no turn: media fetched late, history reconciled, text retracted.
func (w *writer) afterwards() []event.Event {
	m := w.o.messages[w.o.order[len(w.o.order)-1]]
	if w.r.IntN(2) == 0 {
		m = w.o.messages[pick(w.r, w.o.order...)]
	}
	e := event.Event{Message: m.id}
	x := w.r.IntN(10)
	if x < 3 || len(m.parts) == 0 {
		e.Type, e.Part, e.Body = event.PartStart, fmt.Sprintf("p%d", len(m.parts)+1), &event.Body{Kind: pick(w.r, event.KindMedia, event.KindStatus, event.KindTool)}
		return []event.Event{e}
	}
	p := pick(w.r, m.parts...)
	e.Part = p.id
	switch {
	case x < 5:
		e.Type, e.Body = event.PartUpdate, &event.Body{Media: &event.Media{URL: w.text(1, 3)}}
		if p.kind == event.KindTool {
			e.Body.State = pick(w.r, event.PartRunning, event.PartDone)
		}
	case p.ended:
		e.Type = event.PartReplace
		if p.kind == event.KindStatus {
			e.Note = pick(w.r, "", "gone")
		}
	case x < 7:
		e.Type, e.Text, e.Offset = event.PartAppend, w.text(1, 4), int64(len(p.fields["text"]))
	default:
		e.Type, e.Text = event.PartReplace, w.text(0, 5)
		if p.kind == event.KindStatus {
			e.Note = pick(w.r, "late", "")
		}
	}
	return []event.Event{e}
}

func sums(p *oraclePart) map[string]event.Sum {
	s := map[string]event.Sum{}
	for _, f := range slices.Sorted(maps.Keys(p.fields)) {
		s[f] = event.Sum{Length: int64(len(p.fields[f])), CRC: crc32.Checksum([]byte(p.fields[f]), crc32.MakeTable(crc32.Castagnoli))}
	}
	return s
}
