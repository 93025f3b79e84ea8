package voice_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/voice"
)

// tagged returns a text whose sentences begin with the number of interruptions before it.
func tagged(tag, sentences int) string {
	var b strings.Builder
	for i := range sentences {
		fmt.Fprintf(&b, "%d says sentence %d. ", tag, i)
	}
	return b.String()
}

// tagOf returns the number with which a text or the id of a turn begins.
func tagOf(text string) int {
	word, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// checkGenerations checks that after each flush there is nothing of what was interrupted, and returns the number of flushes. Texts and turns
// are tagged with the number of interruptions before them.
func checkGenerations(s *started) (flushes int, err error) {
	sample := int64(0)
	for _, e := range s.list() {
		switch {
		case e.isFlush:
			flushes++
			sample = 0
		case len(e.samples) > 0:
			if tag := tagOf(s.engine.text(e.samples[0])); tag != flushes {
				return flushes, fmt.Errorf("audio of %d after %d flushes", tag, flushes)
			}
			sample += int64(len(e.samples))
		case e.frame.Type == "caption" || e.frame.Type == "stream_done":
			if tagOf(e.frame.Turn) != flushes || e.frame.Generation != int64(flushes+1) || e.frame.Sample+e.frame.Samples != sample {
				return flushes, fmt.Errorf("%+v after %d flushes and %d samples", e.frame, flushes, sample)
			}
		case e.frame.Type == "state" && e.frame.Generation != int64(flushes+1):
			return flushes, fmt.Errorf("%+v after %d flushes", e.frame, flushes)
		}
	}
	return flushes, nil
}

// plan is a random run of a session.
type plan struct {
	latency, delay time.Duration // of the engine and of each write
	factor         float64
	rounds         []round
}

// round is what precedes an interruption, and the interruption.
type round struct {
	answers       []planned
	speech        time.Duration // until the interruption
	isStale       bool          // one of the last generation precedes it
	isNamed       bool          // it names the generation
	played        int64
	isEndedByStop bool
}

// planned is an answer of a plan.
type planned struct {
	sentences  int
	pause      time.Duration // in its middle
	isComplete bool
}

func drawPlan(t *rapid.T) plan {
	millis := func(limit int, name string) time.Duration {
		return time.Duration(rapid.IntRange(0, limit).Draw(t, name)) * time.Millisecond
	}
	p := plan{latency: millis(500, "latency"), delay: millis(30, "delay"), factor: rapid.SampledFrom([]float64{0, 0.8, 1.5, 10}).Draw(t, "factor")}
	for range 10 {
		r := round{
			speech: millis(4000, "speech"), isStale: rapid.Bool().Draw(t, "stale"), isNamed: rapid.Bool().Draw(t, "named"),
			played: rapid.Int64Range(-1, 200_000).Draw(t, "played"), isEndedByStop: rapid.Bool().Draw(t, "end"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "answers") {
			r.answers = append(r.answers, planned{rapid.IntRange(1, 5).Draw(t, "sentences"), millis(300, "pause"), rapid.Bool().Draw(t, "complete")})
		}
		p.rounds = append(p.rounds, r)
	}
	return p
}

// run runs the plan, and then an answer that nobody interrupts.
func (p plan) run(t *testing.T) error {
	s := start(t, &engine{latency: p.latency, factor: p.factor}, func(r *recorder) { r.delay = p.delay })
	defer s.end()
	for tag, r := range p.rounds {
		if err := r.run(s, tag); err != nil {
			return err
		}
	}
	last := tagged(len(p.rounds), 3)
	s.say(fmt.Sprint(len(p.rounds), " last"), last)
	s.awaitDone(fmt.Sprint(len(p.rounds), " last"))
	if flushes, err := checkGenerations(s); err != nil || flushes != len(p.rounds) {
		return fmt.Errorf("%d flushes; %w", flushes, err)
	}
	if lead, _ := maxLead(s.list()); lead > voice.MaxLead {
		return fmt.Errorf("%v ahead", lead)
	}
	count := 0
	for _, e := range s.list() {
		if e.isFlush {
			count = 0
		}
		count += len(e.samples)
	}
	if want := len(strings.ReplaceAll(strings.TrimSpace(last), ". ", ".")) * runeSamples; count != want {
		return fmt.Errorf("%d samples of the last answer, not %d", count, want)
	}
	return nil
}

func (r round) run(s *started, tag int) error {
	for i, a := range r.answers {
		id, text := fmt.Sprint(tag, " ", i), tagged(tag, a.sentences)
		s.Update(id, text[:len(text)/2], false)
		time.Sleep(a.pause)
		s.Update(id, text, a.isComplete)
	}
	time.Sleep(r.speech)
	if r.isStale && tag > 0 {
		if _, ok := s.Interrupt(int64(tag), 0); ok {
			return fmt.Errorf("a stale interruption before %d has an effect", tag)
		}
	}
	generation := int64(0)
	if r.isNamed {
		generation = int64(tag + 1)
	}
	i, ok := s.Interrupt(generation, r.played)
	if !ok {
		return fmt.Errorf("interruption %d has no effect", tag)
	}
	for _, turn := range i.Turns {
		if tagOf(turn) != tag {
			return fmt.Errorf("interruption %d ends %q", tag, turn)
		}
		s.Update(turn, tagged(tag, 9), r.isEndedByStop) // it goes on until it is stopped
	}
	if i.Mark.Turn != "" && (tagOf(i.Mark.Turn) != tag || i.Mark.Offset > len(tagged(tag, 5))) {
		return fmt.Errorf("interruption %d: heard %+v", tag, i.Mark)
	}
	return nil
}

// Random interruptions: nothing of an answer follows the flush of its interruption, the lead stays small, and the next answer is complete.
// Each run has 10 interruptions, and there are 100 runs unless -rapid.checks says otherwise.
func TestRandomInterruptions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var err error
		synctest.Test(t, func(t *testing.T) { err = p.run(t) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// Interruptions at particular moments.
func TestInterruptAt(t *testing.T) {
	const text = "0 says one. 0 says two. 0 says three." // 11, 11 and 13 characters: 0.55, 0.55 and 0.65 s
	for name, tt := range map[string]struct {
		latency time.Duration
		at      time.Duration
		played  int64
		turns   int
		isEnded bool
		heard   voice.HeardMark
	}{
		"before the engine answers":       {latency: time.Second, at: 500 * time.Millisecond, turns: 1},
		"in the first sentence":           {at: 300 * time.Millisecond, played: 7000, turns: 1, heard: voice.HeardMark{Turn: "0", Offset: 6}},
		"between two sentences":           {at: 600 * time.Millisecond, played: 11 * runeSamples, turns: 1, heard: voice.HeardMark{Turn: "0", Offset: 12}},
		"in the second sentence":          {at: 900 * time.Millisecond, played: 20 * runeSamples, turns: 1, heard: voice.HeardMark{Turn: "0", Offset: 18}},
		"nothing was played":              {at: 300 * time.Millisecond, played: 0, turns: 1, heard: voice.HeardMark{Turn: "0"}},
		"the client doesn't know":         {at: 900 * time.Millisecond, played: -1, turns: 1, heard: voice.HeardMark{Turn: "0", Offset: 18}},
		"more than was sent":              {at: 300 * time.Millisecond, played: 1 << 50, turns: 1, heard: voice.HeardMark{Turn: "0", Offset: 24}},
		"after the last byte, not played": {at: time.Second, played: 24 * runeSamples, isEnded: true, heard: voice.HeardMark{Turn: "0", Offset: 25}},
		"after the last byte, played":     {at: 5 * time.Second, played: 35 * runeSamples, isEnded: true, heard: voice.HeardMark{Turn: "0", Offset: 37, IsWhole: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, &engine{latency: tt.latency}, nil)
				defer s.end()
				s.Update("0", text, tt.isEnded)
				time.Sleep(tt.at)
				if !s.IsSpeaking() && tt.at < time.Second {
					t.Error("it doesn't speak")
				}
				i, ok := s.Interrupt(1, tt.played)
				if !ok || len(i.Turns) != tt.turns || i.Mark != tt.heard {
					t.Errorf("%+v, %v; want %+v", i, ok, tt.heard)
				}
				again, ok := s.Interrupt(2, 0)
				if !ok || len(again.Turns) != 0 || again.Mark != (voice.HeardMark{}) {
					t.Errorf("again: %+v", again)
				}
				if s.IsSpeaking() || s.IsBusy() {
					t.Error("it speaks after an interruption")
				}
				s.say("2", "2 says one.")
				s.awaitDone("2")
				// The text has the tag 0, and there are two flushes before the next one.
				if flushes, err := checkGenerations(s); flushes != 2 || err != nil {
					t.Errorf("%d flushes, %v", flushes, err)
				}
			})
		})
	}
}

// A turn that was interrupted and runs on is silent, until the agent has got a message into it.
func TestUnmute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, &engine{}, nil)
		defer s.end()
		s.Update("t", "One is here. ", false)
		time.Sleep(100 * time.Millisecond)
		s.Interrupt(0, 0)
		s.Update("t", "One is here. Two is here. ", false)
		time.Sleep(100 * time.Millisecond)
		s.Unmute("t")
		s.Unmute("unknown")
		s.Update("t", "One is here. Two is here. Three is here.", true)
		s.awaitDone("t")
		var spoken []string
		for _, f := range s.frames("caption") {
			spoken = append(spoken, f.Text)
		}
		if want := []string{"One is here.", "Three is here."}; !slices.Equal(spoken, want) {
			t.Errorf("%q", spoken)
		}
	})
}

// Reports of what was played say when the whole answer was heard, and never go back.
func TestPlayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, &engine{}, nil)
		defer s.end()
		s.say("t", "One is here. Two is here.")
		s.awaitDone("t")
		if _, ok := s.Played(1, 24*runeSamples-1); ok {
			t.Error("heard one sample too early")
		}
		if _, ok := s.Played(2, 1<<40); ok {
			t.Error("a report of another generation counts")
		}
		_, _ = s.Played(1, -1)
		if h, ok := s.HeardMark(); !ok || h.IsWhole || h.Offset != 19 {
			t.Errorf("%+v", h)
		}
		if h, ok := s.Played(1, 24*runeSamples); !ok || h != (voice.HeardMark{Turn: "t", Offset: 25, IsWhole: true}) {
			t.Errorf("%+v", h)
		}
		if _, ok := s.Played(1, 1<<40); ok {
			t.Error("heard twice")
		}
	})
}
