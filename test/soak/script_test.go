package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// script determines the text that an agent streams in one turn.
type script struct {
	rngSeed uint64
	words   int
	// breakAfter is the number of words after which the agent ends its stream without the dialect's end. If it is 0, it sends all words.
	breakAfter int
}

// prompt returns the user's message that requests the script. parseScript is its inverse.
func (s script) prompt() string {
	return fmt.Sprintf("soak %d %d %d", s.rngSeed, s.words, s.breakAfter)
}

func parseScript(prompt string) (s script, err error) {
	if _, err := fmt.Sscanf(prompt, "soak %d %d %d", &s.rngSeed, &s.words, &s.breakAfter); err != nil {
		return s, fmt.Errorf("prompt %q: %w", prompt, err)
	}
	return s, nil
}

// syllables contain characters of one to four bytes, so that a split inside a character is detected.
var syllables = []string{"ka", "ré", "東", "mo", "👋", "li", "ñu", "sh"}

// pieces returns the words that the agent sends. Each begins with its number, so that a lost or repeated word changes the text.
func (s script) pieces() []string {
	rng := rand.New(rand.NewPCG(s.rngSeed, 7))
	n := s.words
	if s.breakAfter > 0 {
		n = s.breakAfter
	}
	list := make([]string, n)
	for i := range list {
		var b strings.Builder
		fmt.Fprintf(&b, "%d", i)
		for range 2 + rng.IntN(4) {
			b.WriteString(syllables[rng.IntN(len(syllables))])
		}
		b.WriteString(" ")
		list[i] = b.String()
	}
	return list
}

func (s script) text() string { return strings.Join(s.pieces(), "") }

// turnCheck checks the states of one turn as a reader sees them, from its first event to its end.
type turnCheck struct {
	script script
	begin  time.Time
	want   string
	// restarts returns the number of restarts so far; before is that number at the beginning of the turn.
	restarts func() int64
	before   int64

	received string // the longest text so far
	endSeq   int64  // seq of the turn's end, 0 before it
}

func newTurnCheck(s script, restarts func() int64) *turnCheck {
	return &turnCheck{script: s, begin: time.Now(), want: s.text(), restarts: restarts, before: restarts()}
}

// turnLimit is the time limit of a turn. It is many times longer than an agent's stream.
const turnLimit = 3 * time.Minute

// update checks the turn as the reader sees it at the given time. turn is nil before the turn has begun. hasEnded reports whether the turn
// has ended.
func (w *turnCheck) update(turn *transcript.Turn, text string, at time.Time) (hasEnded bool, err error) {
	if !strings.HasPrefix(text, w.received) {
		return false, fmt.Errorf("text was taken back after the reader had received %d bytes: %s", len(w.received), excerpt(text, w.received))
	}
	w.received = text
	if !strings.HasPrefix(w.want, text) {
		return false, fmt.Errorf("the text differs from the agent's: %s", excerpt(text, w.want))
	}
	if turn == nil || turn.Unfinished() {
		if age := at.Sub(w.begin); age > turnLimit {
			return false, fmt.Errorf("the turn has not ended after %v, with %d of %d bytes", age.Round(time.Second), len(text), len(w.want))
		}
		return false, nil
	}
	if w.endSeq != 0 && w.endSeq != turn.EndSeq {
		return false, fmt.Errorf("the turn has ended twice, at seq %d and at %d", w.endSeq, turn.EndSeq)
	}
	w.endSeq = turn.EndSeq
	return true, w.checkEnd(turn, text)
}

// checkEnd checks the turn's outcome. Any outcome is accepted if the gateway was restarted during the turn.
func (w *turnCheck) checkEnd(turn *transcript.Turn, text string) error {
	switch {
	case turn.Outcome == event.Completed && w.script.breakAfter > 0:
		return fmt.Errorf("the turn is completed although its agent broke off")
	case turn.Outcome == event.Completed && text != w.want:
		return fmt.Errorf("the turn is completed with %d of %d bytes", len(text), len(w.want))
	case turn.Outcome == event.Completed, w.restarts() != w.before:
		return nil
	case turn.Outcome == event.Failed && w.script.breakAfter > 0:
		if text != w.want {
			return fmt.Errorf("the agent broke off after %d bytes, and the turn has %d of them", len(w.want), len(text))
		}
		return nil
	}
	reason := turn.Reason
	if turn.Error != nil {
		reason = turn.Error.Code + ": " + turn.Error.Message
	}
	return fmt.Errorf("the turn ended as %s (%s) without a cause", turn.Outcome, reason)
}

// excerpt shows both texts around the first byte that differs.
func excerpt(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("…%q instead of …%q at byte %d", got[max(0, i-20):min(len(got), i+20)], want[max(0, min(i-20, len(want))):min(len(want), i+20)], i)
}
