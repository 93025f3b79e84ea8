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
func checkGenerations(t rapid.TB, s *started) (flushes int) {
	t.Helper()
	sample := int64(0)
	for _, e := range s.list() {
		switch {
		case e.isFlush:
			flushes++
			sample = 0
		case len(e.samples) > 0:
			if tag := tagOf(s.engine.text(e.samples[0])); tag != flushes {
				t.Fatalf("audio of %d after %d flushes", tag, flushes)
			}
			sample += int64(len(e.samples))
		case e.frame.Type == "caption" || e.frame.Type == "stream_done":
			if tagOf(e.frame.Turn) != flushes || e.frame.Generation != int64(flushes+1) || e.frame.Sample+e.frame.Samples != sample {
				t.Fatalf("%+v after %d flushes and %d samples", e.frame, flushes, sample)
			}
		case e.frame.Type == "state" && e.frame.Generation != int64(flushes+1):
			t.Fatalf("%+v after %d flushes", e.frame, flushes)
		}
	}
	return flushes
}

// Random interruptions: nothing of an answer follows the flush of its interruption, the lead stays small, and the next answer is complete.
// Each run has 10 interruptions, and there are at least 100 runs.
func TestRandomInterruptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			millis := func(name string, limit int) time.Duration {
				return time.Duration(rapid.IntRange(0, limit).Draw(rt, name)) * time.Millisecond
			}
			e := &engine{latency: millis("latency", 500), factor: rapid.SampledFrom([]float64{0, 0.8, 1.5, 10}).Draw(rt, "factor")}
			s := start(t, e, func(r *recorder) { r.delay = millis("delay", 30) })
			defer s.end()
			for tag := range 10 {
				for i := range rapid.IntRange(0, 2).Draw(rt, "answers") {
					id := fmt.Sprint(tag, " ", i)
					text := tagged(tag, rapid.IntRange(1, 5).Draw(rt, "sentences"))
					isComplete := rapid.Bool().Draw(rt, "complete")
					s.Update(id, text[:len(text)/2], false)
					time.Sleep(millis("pause", 300))
					s.Update(id, text, isComplete)
				}
				time.Sleep(millis("speech", 4000))
				if rapid.Bool().Draw(rt, "stale") {
					if _, ok := s.Interrupt(int64(tag), 0); ok { // the generation before
						rt.Fatal("a stale interruption has an effect")
					}
				}
				i, ok := s.Interrupt([]int64{0, int64(tag + 1)}[rapid.IntRange(0, 1).Draw(rt, "named")], int64(rapid.IntRange(-1, 200_000).Draw(rt, "played")))
				if !ok {
					rt.Fatal("the interruption has no effect")
				}
				for _, turn := range i.Turns {
					if tagOf(turn) != tag {
						rt.Fatalf("interruption %d ends %q", tag, turn)
					}
					s.Update(turn, tagged(tag, 9), rapid.Bool().Draw(rt, "end")) // it goes on until it is stopped
				}
				if i.Heard.Turn != "" && (tagOf(i.Heard.Turn) != tag || i.Heard.Offset > len(tagged(tag, 5))) {
					rt.Fatalf("interruption %d: heard %+v", tag, i.Heard)
				}
			}
			last := tagged(10, 3)
			s.say("10 last", last)
			s.awaitDone("10 last")
			if flushes := checkGenerations(rt, s); flushes != 10 {
				rt.Fatalf("%d flushes", flushes)
			}
			if lead, _ := maxLead(s.list()); lead > voice.MaxLead {
				rt.Fatalf("%v ahead", lead)
			}
			count := 0
			for _, e := range s.list() {
				if e.isFlush {
					count = 0
				}
				count += len(e.samples)
			}
			if want := len(strings.ReplaceAll(strings.TrimSpace(last), ". ", ".")) * runeSamples; count != want {
				rt.Fatalf("%d samples of the last answer, not %d", count, want)
			}
		})
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
		heard   voice.Heard
	}{
		"before the engine answers":       {latency: time.Second, at: 500 * time.Millisecond, turns: 1},
		"in the first sentence":           {at: 300 * time.Millisecond, played: 7000, turns: 1, heard: voice.Heard{Turn: "0", Offset: 1}},
		"between two sentences":           {at: 600 * time.Millisecond, played: 11 * runeSamples, turns: 1, heard: voice.Heard{Turn: "0", Offset: 12}},
		"in the second sentence":          {at: 900 * time.Millisecond, played: 20 * runeSamples, turns: 1, heard: voice.Heard{Turn: "0", Offset: 18}},
		"nothing was played":              {at: 300 * time.Millisecond, played: 0, turns: 1, heard: voice.Heard{Turn: "0"}},
		"the client doesn't know":         {at: 900 * time.Millisecond, played: -1, turns: 1, heard: voice.Heard{Turn: "0", Offset: 18}},
		"more than was sent":              {at: 300 * time.Millisecond, played: 1 << 50, turns: 1, heard: voice.Heard{Turn: "0", Offset: 37}},
		"after the last byte, not played": {at: time.Second, played: 24 * runeSamples, isEnded: true, heard: voice.Heard{Turn: "0", Offset: 25}},
		"after the last byte, played":     {at: 5 * time.Second, played: 35 * runeSamples, isEnded: true, heard: voice.Heard{Turn: "0", Offset: 37, IsWhole: true}},
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
				if !ok || len(i.Turns) != tt.turns || i.Heard != tt.heard {
					t.Errorf("%+v, %v; want %+v", i, ok, tt.heard)
				}
				again, ok := s.Interrupt(2, 0)
				if !ok || len(again.Turns) != 0 || again.Heard != (voice.Heard{}) {
					t.Errorf("again: %+v", again)
				}
				if s.IsSpeaking() || s.IsBusy() {
					t.Error("it speaks after an interruption")
				}
				s.say("2", "2 says one.")
				s.awaitDone("2")
				// The text has the tag 0, and there are two flushes before the next one.
				if flushes := checkGenerations(t, s); flushes != 2 {
					t.Errorf("%d flushes", flushes)
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
		if h, ok := s.Heard(); !ok || h.IsWhole || h.Offset != 21 {
			t.Errorf("%+v", h)
		}
		if h, ok := s.Played(1, 24*runeSamples); !ok || h != (voice.Heard{Turn: "t", Offset: 25, IsWhole: true}) {
			t.Errorf("%+v", h)
		}
		if _, ok := s.Played(1, 1<<40); ok {
			t.Error("heard twice")
		}
	})
}
