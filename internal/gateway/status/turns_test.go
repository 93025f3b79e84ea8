package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
)

type sink struct{ all []signals.Signal }

func (s *sink) Offer(x signals.Signal) { s.all = append(s.all, x) }

func (s *sink) take(stream string) (n int) {
	for _, x := range s.all {
		if x.Stream == stream {
			n++
		}
	}
	return n
}

// start begins a turn with one open part of text.
func start(w *status.Turns, turn string) *journal.Summary {
	s := &journal.Summary{ID: "c-" + turn}
	w.Committed(s, []event.Event{
		{Type: event.TurnStart, Turn: turn, Body: &event.Body{Agent: "a"}},
		{Type: event.PartStart, Turn: turn, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
	})
	return s
}

func say(w *status.Turns, s *journal.Summary, turn, text string) {
	w.Committed(s, []event.Event{{Type: event.PartAppend, Turn: turn, Message: "m", Part: "p", Text: text}})
}

// A turn publishes progress once a second and each part's full text at its end, numbered without gaps.
func TestProgressRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		w := status.NewTurns(out)
		s := start(w, "t")
		for range 100 { // 10 s
			say(w, s, "t", "wörd ")
			time.Sleep(100 * time.Millisecond)
		}
		if n := out.take("assistant"); n != 10 {
			t.Errorf("%d signals in 10 s", n)
		}
		say(w, s, "t", strings.Repeat("ö", 10_000))
		w.Committed(s, []event.Event{
			{Type: event.PartEnd, Turn: "t", Message: "m", Part: "p"},
			{Type: event.PartStart, Turn: "t", Message: "m", Part: "q", Body: &event.Body{Kind: event.KindTool, Name: "bash"}},
			{Type: event.PartUpdate, Turn: "t", Message: "m", Part: "q", Body: &event.Body{State: event.PartFailed}},
			{Type: event.PartEnd, Turn: "t", Message: "m", Part: "q"},
			{Type: event.TurnEnd, Turn: "t", Body: &event.Body{Outcome: event.Failed, Error: &event.Error{Code: "x", Message: "secret"}}},
			{Type: event.PartEnd, Turn: "t", Message: "m", Part: "q"}, // after the turn's end it is ignored
		})
		seq := int64(0)
		for _, x := range out.all {
			if x.Type == signals.AgentEvent {
				if seq++; *x.Seq != seq || x.RunID != "t" || x.Conversation != "c-t" {
					t.Errorf("number %d: %+v", seq, x)
				}
			}
			if err := x.Check(); err != nil || strings.Contains(string(x.Payload), "secret") || len(x.Payload) > 3<<10 {
				t.Errorf("%s: %v", x.Payload, err)
			}
		}
		last := out.all[len(out.all)-2:]
		if string(last[0].Payload) != `{"final":true,"name":"bash","state":"failed"}` || !strings.HasPrefix(string(last[1].Payload), `{"code":"x","durationMs":10000,"outcome":"failed","phase":"error"}`) {
			t.Errorf("the end: %s %s", last[0].Payload, last[1].Payload)
		}
		if out.take("tool") != 1 {
			t.Errorf("%d of the tool", out.take("tool"))
		}
	})
}

// A thousand turns that stream for ten seconds fill less than half of the log.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		w := status.NewTurns(out)
		const turns = 1000
		var all []*journal.Summary
		for i := range turns {
			all = append(all, start(w, fmt.Sprint(i)))
		}
		for range 10 {
			for i, s := range all {
				say(w, s, fmt.Sprint(i), "word ")
			}
			time.Sleep(time.Second)
		}
		for i, s := range all {
			w.Committed(s, []event.Event{{Type: event.TurnEnd, Turn: fmt.Sprint(i), Body: &event.Body{Outcome: event.Completed}}})
		}
		if n := len(out.all); n < 300 || n > signals.Cap/2 {
			t.Errorf("%d turns gave %d signals", turns, n)
		}
	})
}

// Reasoning is published on the thought stream.
func TestThought(t *testing.T) {
	out := &sink{}
	w := status.NewTurns(out)
	s := &journal.Summary{ID: "c"}
	w.Committed(s, []event.Event{
		{Type: event.TurnStart, Turn: "t", Body: &event.Body{Agent: "a"}},
		{Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindReasoning}},
		{Type: event.PartReplace, Turn: "t", Message: "m", Part: "p", Text: "so"},
		{Type: event.PartEnd, Turn: "t", Message: "m", Part: "p"},
	})
	var p struct {
		Text  string
		Final bool
	}
	x := out.all[len(out.all)-1]
	if err := json.Unmarshal(x.Payload, &p); err != nil || x.Stream != "thought" || p.Text != "so" || !p.Final || out.take("thought") != 2 {
		t.Errorf("%+v, %v", x, err)
	}
}
