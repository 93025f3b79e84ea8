package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestScript(t *testing.T) {
	s := script{seed: 5, words: 40, cut: 7}
	got, err := parseScript(s.prompt())
	if err != nil || got != s || len(s.pieces()) != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if whole := (script{seed: 5, words: 40}); !strings.HasPrefix(whole.text(), s.text()) || len(whole.pieces()) != 40 {
		t.Error("an agent that breaks off says something else")
	}
	if _, err := parseScript("hello"); err == nil {
		t.Error("any prompt is a script")
	}
}

func ended(o event.Outcome, seq int64) *transcript.Turn {
	return &transcript.Turn{State: transcript.TurnEnded, Outcome: o, EndSeq: seq, Error: &event.Error{Code: "cut_short"}}
}

// Planted faults in what a reader sees are found, and what is as it should be is not taken for one.
func TestWatch(t *testing.T) {
	running := &transcript.Turn{State: transcript.TurnRunning}
	whole := script{seed: 1, words: 20}
	broken := script{seed: 1, words: 20, cut: 10}
	text, half := whole.text(), broken.text()
	type step struct {
		turn *transcript.Turn
		text string
		late time.Duration
	}
	for name, c := range map[string]struct {
		script    script
		restarted bool
		steps     []step
		fault     string // empty: none
	}{
		"whole":                 {whole, false, []step{{nil, "", 0}, {running, text[:9], 0}, {running, text[:9], 0}, {ended(event.Completed, 9), text, 0}}, ""},
		"broken off":            {broken, false, []step{{running, half[:9], 0}, {ended(event.Failed, 9), half, 0}}, ""},
		"interrupted":           {whole, true, []step{{running, text[:9], 0}, {ended(event.Interrupted, 9), text[:30], 0}}, ""},
		"lost in the middle":    {whole, false, []step{{running, text[:20] + text[30:], 0}}, "never said"},
		"lost at the end":       {whole, false, []step{{ended(event.Completed, 9), text[:len(text)-3], 0}}, "completed with"},
		"lost where it broke":   {broken, false, []step{{ended(event.Failed, 9), half[:len(half)-3], 0}}, "of which"},
		"taken back":            {whole, false, []step{{running, text[:20], 0}, {running, text[:10], 0}}, "are gone"},
		"taken back at the end": {whole, true, []step{{running, text[:20], 0}, {ended(event.Interrupted, 9), text[:10], 0}}, "are gone"},
		"doubled":               {whole, false, []step{{running, text[:20] + text[10:20], 0}}, "never said"},
		"doubled whole":         {whole, false, []step{{ended(event.Completed, 9), text + text, 0}}, "never said"},
		"endless":               {whole, false, []step{{running, text, turnLimit - time.Second}, {running, text, turnLimit + time.Second}}, "not ended"},
		"never begun":           {whole, false, []step{{nil, "", turnLimit + time.Second}}, "not ended"},
		"two ends":              {whole, false, []step{{ended(event.Completed, 9), text, 0}, {ended(event.Completed, 12), text, 0}}, "ended twice"},
		"failed for nothing":    {whole, false, []step{{ended(event.Failed, 9), text, 0}}, "for no reason"},
		"interrupted for none":  {whole, false, []step{{ended(event.Interrupted, 9), text[:9], 0}}, "for no reason"},
		"completed but broken":  {broken, false, []step{{ended(event.Completed, 9), half, 0}}, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			restarts := int64(0)
			w := newWatch(c.script, func() int64 { return restarts })
			if c.restarted {
				restarts++
			}
			var err error
			for i, s := range c.steps {
				var over bool
				over, err = w.look(s.turn, s.text, w.begin.Add(s.late))
				if err != nil && i < len(c.steps)-1 {
					t.Fatalf("step %d: %v", i+1, err)
				}
				if err == nil && over != (s.turn != nil && !s.turn.Unfinished()) {
					t.Errorf("step %d: over is %v", i+1, over)
				}
			}
			switch {
			case c.fault == "" && err != nil:
				t.Error(err)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("%v; want %q", err, c.fault)
			}
		})
	}
}
