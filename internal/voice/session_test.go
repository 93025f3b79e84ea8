package voice_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// An answer that grows is spoken completely, in order, paced and without pauses.
func TestSpeaksWhileItGrows(t *testing.T) {
	for name, e := range map[string]*engine{
		"at once":       {},
		"slow to begin": {latency: 300 * time.Millisecond},
		"a bit faster than real time, and slow to begin": {latency: 300 * time.Millisecond, factor: 1.5},
		"much faster": {factor: 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, e, nil)
				defer s.end()
				text := ""
				for i := range 20 {
					for _, word := range strings.Fields(fmt.Sprintf("This is the sentence number %d.", i)) {
						text += word + " "
						s.Update("t", text, false)
						time.Sleep(20 * time.Millisecond)
					}
				}
				s.Update("t", text, true)
				s.awaitDone("t")
				want := 0
				for n := range e.texts() {
					want += len(e.text(n+1)) * runeSamples
				}
				samples := s.samples()
				if len(samples) != want || len(e.texts()) != 20 || !slices.IsSorted(samples) {
					t.Errorf("%d samples of %d, %d utterances", len(samples), want, len(e.texts()))
				}
				lead, gap := maxLead(s.list())
				if lead > voice.MaxLead || lead < voice.MaxLead-100*time.Millisecond {
					t.Errorf("%v ahead", lead)
				}
				if gap > 80*time.Millisecond {
					t.Errorf("a pause of %v", gap)
				}
				checkCaptions(t, s, text)
				list := s.list()
				if last := list[len(list)-1].frame; last.Type != "state" || last.State != "listening" {
					t.Errorf("it ends with %+v", last)
				}
				var states []string
				for _, f := range s.frames("state") {
					states = append(states, f.State)
				}
				if got := strings.Join(states, " "); got != "thinking speaking listening" {
					t.Errorf("states: %s", got)
				}
			})
		})
	}
}

// checkCaptions checks that each caption precedes the first sample of its utterance, and that together they cover the text.
func checkCaptions(t *testing.T, s *started, text string) {
	t.Helper()
	sample, at, next := int64(0), 0, 1
	for _, e := range s.list() {
		if f := e.frame; f.Type == "caption" {
			if f.Sample != sample || f.Start != at || f.Text != strings.TrimSpace(text[f.Start:f.End]) || f.Text != s.engine.text(next) || f.Turn != "t" || f.Generation != 1 {
				t.Errorf("caption %+v at sample %d of utterance %d", f, sample, next)
			}
			at = f.End
			next++
		}
		if len(e.samples) > 0 && e.samples[0] != next-1 {
			t.Errorf("audio of %d precedes its caption", e.samples[0])
		}
		sample += int64(len(e.samples))
	}
	if done := s.frames("stream_done"); len(done) != 1 || done[0].Samples != sample {
		t.Errorf("%+v after %d samples", done, sample)
	}
}

// A sentence is spoken before the next one exists, also if the agent pauses behind it.
func TestSpeaksAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{}
		s := start(t, e, nil)
		defer s.end()
		began := time.Now()
		s.Update("t", "Hello.", false)
		s.await(func() bool { return len(s.samples()) > 0 })
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("after %v", took)
		}
		time.Sleep(10 * time.Second)
		s.Update("t", "Hello. I am back.", true)
		s.awaitDone("t")
		if got := e.texts(); !slices.Equal(got, []string{"Hello.", "I am back."}) {
			t.Errorf("%q", got)
		}
	})
}

// Text that is replaced before it was spoken is not spoken, and nothing is spoken twice.
func TestReplacedText(t *testing.T) {
	for _, tt := range []struct {
		name  string
		texts []string // each 200 ms after the one before; a sentence takes longer
		want  string
	}{
		{"before its first sample", []string{"One is here. Two is wrong. Three is wrong. ", "One is here. Two is right. "}, "One is here.|Two is right."},
		{"retracted", []string{"One is here. Two is wrong. ", "One is here. "}, "One is here."},
		{"a status that becomes the answer", []string{"Searching for it. ", "I found it. "}, "Searching for it.|I found it."},
		{"a snapshot that grows again", []string{"One is here. ", "", "One", "One is here. Two is here. "}, "One is here.|Two is here."},
		{"a sentence before what was spoken goes", []string{"A status is here. ", "A status is here. The answer is long. ", "", "", "", "", "", "", "", "The answer is long. It goes on. "}, "A status is here.|The answer is long.|It goes on."},
		{"the spoken sentence changes", []string{"It costs 5. ", "It costs 6. "}, "It costs 5.|It costs 6."},
		{"all of it goes", []string{"One is here. ", ""}, "One is here."},
		{"not ASCII", []string{"Das kostet 5 €. Danach ü. ", "Das kostet 5 €. Danach ö. "}, "Das kostet 5 €.|Danach ö."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &engine{latency: 100 * time.Millisecond, factor: 1}
				s := start(t, e, nil)
				defer s.end()
				for i, text := range tt.texts {
					s.Update("t", text, i == len(tt.texts)-1)
					time.Sleep(200 * time.Millisecond)
				}
				s.awaitDone("t")
				var spoken []string
				for _, f := range s.frames("caption") {
					spoken = append(spoken, f.Text)
				}
				if got := strings.Join(spoken, "|"); got != tt.want {
					t.Errorf("%s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// A sentence that can't be spoken is reported, and the next one is spoken. After a few failures the rest is left to the eyes.
func TestEngineFails(t *testing.T) {
	broken := errors.New("broken")
	text := "A is good. B is bad. C is good. D is bad. E is bad. F is bad. G is good. "
	synctest.Test(t, func(t *testing.T) {
		e := &engine{fail: func(text string) (int, error) {
			if strings.Contains(text, "bad") {
				return 100, broken
			}
			return 0, nil
		}}
		s := start(t, e, nil)
		defer s.end()
		s.say("t", text)
		s.awaitDone("t")
		var spoken []string
		for _, f := range s.frames("caption") {
			spoken = append(spoken, f.Text[:1])
		}
		if got := strings.Join(spoken, ""); got != "ABCDEF" {
			t.Errorf("spoken: %s", got)
		}
		failures := s.frames("error")
		if len(failures) != 4 || failures[0].Code != "speech_failed" || failures[0].Turn != "t" {
			t.Errorf("%+v", failures)
		}
		s.say("next", "H is good. ")
		s.awaitDone("next")
		if last := s.frames("caption"); last[len(last)-1].Text != "H is good." {
			t.Errorf("the next answer: %+v", last)
		}
	})
}

// An engine that doesn't answer fails its sentence.
func TestEngineIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, &engine{latency: time.Hour}, nil)
		defer s.end()
		began := time.Now()
		s.say("t", "Hello there.")
		s.awaitDone("t")
		if took := time.Since(began); took != 15*time.Second || len(s.frames("error")) != 1 {
			t.Errorf("after %v: %s", took, s)
		}
	})
}

// Without an engine, the states and the end of an answer are reported.
func TestNoEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, nil, nil)
		defer s.end()
		s.Update("t", "Hello. ", false)
		synctest.Wait()
		s.Update("t", "Hello. There.", true)
		synctest.Wait()
		if got := s.String(); got != "state(tthinking) stream_done(t) state(listening) " {
			t.Error(got)
		}
	})
}

// Answers follow each other.
func TestTwoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, &engine{}, nil)
		defer s.end()
		s.Update("a", "The first one. ", false)
		s.say("b", "The second one.")
		time.Sleep(time.Second)
		s.say("a", "The first one. It goes on.")
		s.awaitDone("b")
		var order []string
		for _, e := range s.list() {
			if e.frame.Type == "caption" || e.frame.Type == "stream_done" {
				order = append(order, e.frame.Type+" "+e.frame.Turn)
			}
		}
		if got := strings.Join(order, ", "); got != "caption a, caption a, stream_done a, caption b, stream_done b" {
			t.Error(got)
		}
	})
}

// A connection that breaks ends the session, and so does a client that reads nothing.
func TestConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := start(t, &engine{}, func(r *recorder) { r.fail = broken })
		s.say("t", "Hello there. How are you?")
		synctest.Wait()
		s.end()
	})
	synctest.Test(t, func(t *testing.T) {
		s := voice.NewSession(voice.Options{})
		for range 2000 {
			s.Post("x")
		}
		if err := s.Run(t.Context(), newRecorder(t)); !errors.Is(err, voice.ErrTooSlow) {
			t.Errorf("ended with %v", err)
		}
	})
}

// A client that resumes gets what it lacks of the sentence, and then the rest of the answer.
func TestResume(t *testing.T) {
	const text = "One is here. Two is here. Three is here."
	for _, tt := range []struct {
		start, samples int
		want           map[int]int // utterance → samples
		sample         int64       // of the first caption
	}{
		{13, 5000, map[int]int{1: 12*runeSamples - 5000, 2: 14 * runeSamples}, -5000},
		{0, 0, map[int]int{1: 12 * runeSamples, 2: 12 * runeSamples, 3: 14 * runeSamples}, 0},
		{0, 12*runeSamples + 10, map[int]int{2: 12*runeSamples - 10, 3: 14 * runeSamples}, -10},
		{26, 1 << 40, map[int]int{}, 0},
		{1 << 30, 7, map[int]int{}, 0},
		{14, 0, map[int]int{1: 11 * runeSamples, 2: 14 * runeSamples}, 0}, // within a sentence
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, &engine{}, nil)
			defer s.end()
			s.Resume("t", tt.start, int64(tt.samples))
			s.Update("t", text, false)
			time.Sleep(time.Second)
			s.Update("t", text, true)
			s.awaitDone("t")
			count := map[int]int{}
			for _, v := range s.samples() {
				count[v]++
			}
			if fmt.Sprint(count) != fmt.Sprint(tt.want) {
				t.Errorf("%d, %d: %v, want %v", tt.start, tt.samples, count, tt.want)
			}
			if captions := s.frames("caption"); len(captions) > 0 && captions[0].Sample != tt.sample {
				t.Errorf("%d, %d: the first caption is at %d", tt.start, tt.samples, captions[0].Sample)
			}
		})
	}
}
