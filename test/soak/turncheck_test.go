package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestScript(t *testing.T) {
	s := script{rngSeed: 5, words: 40, breakAfter: 7}
	got, err := parseScript(s.prompt())
	if err != nil || got != s || len(s.pieces()) != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if whole := (script{rngSeed: 5, words: 40}); !strings.HasPrefix(whole.text(), s.text()) || len(whole.pieces()) != 40 {
		t.Error("a script that breaks off has another text")
	}
	if _, err := parseScript("hello"); err == nil {
		t.Error("a prompt without a script was accepted")
	}
}

// endedTurn returns a turn that ended with an outcome at a seq.
func endedTurn(o event.Outcome, seq int64) *transcript.Turn {
	return &transcript.Turn{State: transcript.TurnEnded, Outcome: o, EndSeq: seq, Error: &event.Error{Code: "cut_short"}}
}

// TestTurnCheck applies states with and without faults. Exactly the faults must be reported.
func TestTurnCheck(t *testing.T) {
	running := &transcript.Turn{State: transcript.TurnRunning}
	whole := script{rngSeed: 1, words: 20}
	broken := script{rngSeed: 1, words: 20, breakAfter: 10}
	text, half := whole.text(), broken.text()
	type step struct {
		turn *transcript.Turn
		text string
		age  time.Duration // since the beginning of the turn
	}
	for name, c := range map[string]struct {
		script    script
		restarted bool
		steps     []step
		fault     string // part of the expected error, empty for success
	}{
		"whole":                   {whole, false, []step{{nil, "", 0}, {running, text[:9], 0}, {running, text[:9], 0}, {endedTurn(event.Completed, 9), text, 0}}, ""},
		"broken off":              {broken, false, []step{{running, half[:9], 0}, {endedTurn(event.Failed, 9), half, 0}}, ""},
		"interrupted":             {whole, true, []step{{running, text[:9], 0}, {endedTurn(event.Interrupted, 9), text[:30], 0}}, ""},
		"lost in the middle":      {whole, false, []step{{running, text[:20] + text[30:], 0}}, "differs from"},
		"lost at the end":         {whole, false, []step{{endedTurn(event.Completed, 9), text[:len(text)-3], 0}}, "completed with"},
		"lost where it broke":     {broken, false, []step{{endedTurn(event.Failed, 9), half[:len(half)-3], 0}}, "the turn has"},
		"taken back":              {whole, false, []step{{running, text[:20], 0}, {running, text[:10], 0}}, "taken back"},
		"taken back at the end":   {whole, true, []step{{running, text[:20], 0}, {endedTurn(event.Interrupted, 9), text[:10], 0}}, "taken back"},
		"repeated":                {whole, false, []step{{running, text[:20] + text[10:20], 0}}, "differs from"},
		"repeated whole":          {whole, false, []step{{endedTurn(event.Completed, 9), text + text, 0}}, "differs from"},
		"endless":                 {whole, false, []step{{running, text, turnLimit - time.Second}, {running, text, turnLimit + time.Second}}, "not ended"},
		"never begun":             {whole, false, []step{{nil, "", turnLimit + time.Second}}, "not ended"},
		"two ends":                {whole, false, []step{{endedTurn(event.Completed, 9), text, 0}, {endedTurn(event.Completed, 12), text, 0}}, "ended twice"},
		"failed without cause":    {whole, false, []step{{endedTurn(event.Failed, 9), text, 0}}, "without a cause"},
		"interrupted, no restart": {whole, false, []step{{endedTurn(event.Interrupted, 9), text[:9], 0}}, "without a cause"},
		"completed but broken":    {broken, false, []step{{endedTurn(event.Completed, 9), half, 0}}, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			restarts := int64(0)
			w := newTurnCheck(c.script, func() int64 { return restarts })
			if c.restarted {
				restarts++
			}
			var err error
			for i, s := range c.steps {
				var hasEnded bool
				hasEnded, err = w.update(s.turn, s.text, w.begin.Add(s.age))
				if err != nil && i < len(c.steps)-1 {
					t.Fatalf("step %d: %v", i+1, err)
				}
				if err == nil && hasEnded != (s.turn != nil && !s.turn.Unfinished()) {
					t.Errorf("step %d: hasEnded is %v", i+1, hasEnded)
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
