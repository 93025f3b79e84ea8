package answertest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Turn is the turn of a [Log] whose answer is read. Another turn may run inside it.
const Turn = "turn"

const inner = "inner"

// generator writes random logs of a conversation in which two turns run.
type generator struct {
	r           *rand.Rand
	events      []event.Event
	folded      transcript.Transcript
	open        []string // requests
	answeredIDs []string // answered ones
	serial      int
}

// Log returns a random log with the events of a turn that has ended, and the seq of the turn's first event.
//
// Its texts grow at the same time, are replaced and retracted, and begin after a message has ended. Requests are asked and answered again. Some
// logs have a turn inside the turn, and all have events that are not part of an answer.
func Log(t testing.TB, r *rand.Rand) (events []event.Event, firstSeq int64) {
	g := &generator{r: r}
	for range r.IntN(3) {
		g.add(t, event.Event{Type: event.MessageAdd, Message: g.id("user"), Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: "hi"}}}})
	}
	firstSeq = int64(len(g.events)) + 1
	if r.IntN(2) == 0 {
		g.add(t, event.Event{Type: event.TurnQueue, Turn: Turn, Body: &event.Body{Agent: "a"}})
		g.add(t, event.Event{Type: event.MessageUpdate, Turn: Turn, Message: "user1", Body: &event.Body{MessageState: event.MessageQueued}})
	}
	g.add(t, event.Event{Type: event.TurnStart, Turn: Turn, Body: &event.Body{Agent: "a"}})
	if r.IntN(3) == 0 {
		g.add(t, event.Event{Type: event.TurnStart, Turn: inner, Body: &event.Body{Agent: "b", Parent: Turn}})
	}
	for n := r.IntN(80); len(g.events) < n; {
		g.step(t)
	}
	end := event.Body{Outcome: []event.Outcome{event.Completed, event.Failed, event.Cancelled, event.Interrupted}[r.IntN(4)]}
	if end.Outcome == event.Failed {
		end.Error = &event.Error{Code: "boom", Message: "it broke"}
	}
	g.add(t, event.Event{Type: event.TurnEnd, Turn: Turn, Body: &end})
	return g.events, firstSeq
}

func (g *generator) id(prefix string) string {
	g.serial++
	return fmt.Sprint(prefix, g.serial)
}

func (g *generator) add(t testing.TB, e event.Event) {
	e.Seq = int64(len(g.events)) + 1
	e.At = e.Seq * 7
	if err := g.folded.Apply(&e); err != nil {
		t.Fatalf("the generator is wrong: %v", err)
	}
	g.events = append(g.events, e)
}

// step adds an event of either turn.
func (g *generator) step(t testing.TB) {
	of := Turn
	if g.folded.Turn(inner) != nil && g.r.IntN(4) == 0 {
		of = inner
	}
	if g.r.IntN(12) == 0 {
		g.about(t, of)
		return
	}
	var messages []*transcript.Message
	for _, m := range g.folded.Messages {
		if m.Turn == of {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 || g.r.IntN(10) == 0 {
		if g.r.IntN(5) == 0 {
			g.add(t, event.Event{Type: event.MessageAdd, Turn: of, Message: g.id("m"), Body: &event.Body{Role: event.Assistant, Parts: []event.Part{{Kind: event.KindText, Text: g.text()}}}})
		} else {
			g.add(t, event.Event{Type: event.MessageStart, Turn: of, Message: g.id("m"), Body: &event.Body{Role: event.Assistant}})
		}
		return
	}
	// Mostly the newest message, but several may be open.
	m := messages[len(messages)-1]
	if g.r.IntN(6) == 0 {
		m = messages[g.r.IntN(len(messages))]
	}
	g.message(t, m)
}

// about adds an event of a turn itself, or of the conversation.
func (g *generator) about(t testing.TB, of string) {
	switch n := g.r.IntN(4); {
	case n == 0:
		g.add(t, event.Event{Type: event.TurnUpdate, Turn: of, Body: &event.Body{Phase: g.id("phase")}})
	case n == 1:
		title := g.id("title")
		g.add(t, event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}})
	case of != Turn:
	case n == 2:
		id := g.id("request")
		if len(g.open) > 0 && g.r.IntN(3) == 0 {
			id = g.open[0] // asked again
		} else {
			g.open = append(g.open, id)
		}
		g.add(t, event.Event{Type: event.TurnWait, Turn: Turn, Body: &event.Body{Request: &event.Request{ID: id, Kind: event.RequestInput}}})
	case len(g.answeredIDs) > 0 && g.r.IntN(3) == 0: // answered again
		g.add(t, event.Event{Type: event.TurnResume, Turn: Turn, Body: &event.Body{Answer: &event.Answer{ID: g.answeredIDs[0], Text: "no"}}})
	case len(g.open) > 0:
		i := g.r.IntN(len(g.open))
		g.add(t, event.Event{Type: event.TurnResume, Turn: Turn, Body: &event.Body{Answer: &event.Answer{ID: g.open[i], Text: "yes"}}})
		g.answeredIDs = append(g.answeredIDs, g.open[i])
		g.open = append(g.open[:i], g.open[i+1:]...)
	}
}

// message adds an event of a message.
func (g *generator) message(t testing.TB, m *transcript.Message) {
	e := event.Event{Turn: m.Turn, Message: m.ID}
	if len(m.Parts) == 0 || g.r.IntN(6) == 0 && (!m.Final || g.r.IntN(4) == 0) {
		e.Type, e.Part = event.PartStart, g.id("p")
		kinds := []event.PartKind{event.KindText, event.KindText, event.KindReasoning, event.KindTool, event.KindStatus, event.KindData}
		e.Body = &event.Body{Kind: kinds[g.r.IntN(len(kinds))]}
		if g.r.IntN(2) == 0 {
			e.Body.Join = event.JoinBlank
		}
		if e.Body.Kind == event.KindTool {
			e.Body.Name, e.Body.Call, e.Body.State = "clock", e.Part, event.PartRunning
		}
		g.add(t, e)
		return
	}
	if !m.Final && g.r.IntN(25) == 0 {
		e.Type = event.MessageEnd
		g.add(t, e)
		return
	}
	p := m.Parts[g.r.IntN(len(m.Parts))]
	if g.r.IntN(2) == 0 {
		p = m.Parts[len(m.Parts)-1]
	}
	e.Part = p.ID
	if p.Kind == event.KindTool {
		e.Field = transcript.Fields[1+g.r.IntN(3)]
	}
	// Most operations are appends, several in a row, so that there is something to merge. A status is mostly replaced.
	switch n := g.r.IntN(20); {
	case p.Final:
		if n > 0 {
			return
		}
		e.Type = event.PartReplace // a retraction
	case n == 0:
		e.Type, e.Field = event.PartEnd, ""
		e.Body = &event.Body{Sums: map[string]event.Sum{}}
		for _, f := range transcript.Fields {
			if p.Len(f) > 0 {
				e.Body.Sums[f.Name()] = p.Sum(f)
			}
		}
	case n == 1 && p.Kind == event.KindTool:
		e.Type, e.Field, e.Body = event.PartUpdate, "", &event.Body{State: event.PartDone}
	case n == 2 || n < 8 && p.Kind == event.KindStatus:
		e.Type, e.Text = event.PartReplace, g.text()
		switch g.r.IntN(4) {
		case 0:
			e.Text = p.Text(e.Field) + e.Text // nothing is taken back
		case 1:
			e.Text = ""
		}
	default:
		for range 1 + g.r.IntN(4) {
			e.Type, e.Offset, e.Text = event.PartAppend, int64(p.Len(e.Field)), g.text()
			g.add(t, e)
		}
		return
	}
	g.add(t, e)
}

func (g *generator) text() string {
	words := []string{"a", "bc", " ", "é", "two words", "\n", "日本"}
	return words[g.r.IntN(len(words))]
}
