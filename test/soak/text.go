package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// script is what an agent says in one turn.
type script struct {
	seed  uint64
	words int
	// cut is after how many words the agent breaks off; 0: it doesn't.
	cut int
}

// prompt is how the agent is asked for a script.
func (s script) prompt() string { return fmt.Sprintf("soak %d %d %d", s.seed, s.words, s.cut) }

func parseScript(prompt string) (s script, err error) {
	if _, err := fmt.Sscanf(prompt, "soak %d %d %d", &s.seed, &s.words, &s.cut); err != nil {
		return s, fmt.Errorf("prompt %q: %w", prompt, err)
	}
	return s, nil
}

// syllables hold characters of one to four bytes, so that a text that is cut anywhere but between characters is found.
var syllables = []string{"ka", "ré", "東", "mo", "👋", "li", "ñu", "sh"}

// pieces are the words that the agent says, one after another. Each has its number, so that no two stretches of a text are alike.
func (s script) pieces() []string {
	rng := rand.New(rand.NewPCG(s.seed, 7))
	n := s.words
	if s.cut > 0 {
		n = s.cut
	}
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		fmt.Fprintf(&b, "%d", i)
		for range 2 + rng.IntN(4) {
			b.WriteString(syllables[rng.IntN(len(syllables))])
		}
		b.WriteString(" ")
		all[i] = b.String()
	}
	return all
}

func (s script) text() string { return strings.Join(s.pieces(), "") }

// watch checks what a reader sees of one turn, from its first event to its end.
type watch struct {
	script script
	begin  time.Time
	want   string
	// restarts counts the restarts of the gateway; before is the count at the beginning.
	restarts func() int64
	before   int64

	seen string
	ends int64 // seq of the end
}

func newWatch(s script, restarts func() int64) *watch {
	return &watch{script: s, begin: time.Now(), want: s.text(), restarts: restarts, before: restarts()}
}

// turnLimit bounds a turn, from its message to its end: many times longer than an agent talks.
const turnLimit = 3 * time.Minute

// look takes what the reader sees now: a turn, which is nil before it has begun, and its text. over says that nothing more will come.
func (w *watch) look(turn *transcript.Turn, text string, now time.Time) (over bool, err error) {
	if !strings.HasPrefix(text, w.seen) {
		return false, fmt.Errorf("the reader had seen %d bytes, and they are gone: it sees %s", len(w.seen), excerpt(text, w.seen))
	}
	w.seen = text
	if !strings.HasPrefix(w.want, text) {
		return false, fmt.Errorf("the agent never said this: %s", excerpt(text, w.want))
	}
	if turn == nil || turn.Unfinished() {
		if age := now.Sub(w.begin); age > turnLimit {
			return false, fmt.Errorf("the turn has not ended after %v, with %d of %d bytes", age.Round(time.Second), len(text), len(w.want))
		}
		return false, nil
	}
	if w.ends != 0 && w.ends != turn.EndSeq {
		return false, fmt.Errorf("the turn has ended twice, at %d and at %d", w.ends, turn.EndSeq)
	}
	w.ends = turn.EndSeq
	return true, w.end(turn, text)
}

// end checks how the turn has ended.
func (w *watch) end(turn *transcript.Turn, text string) error {
	switch {
	case turn.Outcome == event.Completed && w.script.cut > 0:
		return fmt.Errorf("it is completed, though its agent broke off")
	case turn.Outcome == event.Completed && text != w.want:
		return fmt.Errorf("it is completed with %d of %d bytes", len(text), len(w.want))
	case turn.Outcome == event.Completed, w.restarts() != w.before:
		return nil
	case turn.Outcome == event.Failed && w.script.cut > 0:
		if text != w.want {
			return fmt.Errorf("its agent broke off after %d bytes, of which %d are there", len(w.want), len(text))
		}
		return nil
	}
	reason := turn.Reason
	if turn.Error != nil {
		reason = turn.Error.Code + ": " + turn.Error.Message
	}
	return fmt.Errorf("it ended as %s (%s), for no reason that there was", turn.Outcome, reason)
}

// excerpt shows where two texts begin to differ.
func excerpt(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("…%q in place of …%q, at byte %d", got[max(0, i-20):min(len(got), i+20)], want[max(0, min(i-20, len(want))):min(len(want), i+20)], i)
}
