package voice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/voice/sentence"
)

// dots is a segmenter whose units end behind each dot.
type dots struct {
	text string
	from int
}

func (d *dots) Write(delta string) (units []sentence.Unit) {
	d.text += delta
	for {
		i := strings.IndexByte(d.text[d.from:], '.')
		if i < 0 {
			return units
		}
		units = append(units, d.unit(d.from+i+1))
	}
}

func (d *dots) Flush() []sentence.Unit { return nil }

func (d *dots) Close() []sentence.Unit {
	if d.from == len(d.text) {
		return nil
	}
	return []sentence.Unit{d.unit(len(d.text))}
}

func (d *dots) unit(end int) sentence.Unit {
	u := sentence.Unit{Text: d.text[d.from:end], Start: d.from, End: end}
	d.from = end
	return u
}

// A text of unique sentences that grows and is replaced in any way: no sentence is spoken twice, every one that is taken is in the text at
// that moment, and sentences of the last text that were not spoken were behind the place that speech had reached.
func TestAnswerRandom(t *testing.T) {
	for name, newSegmenter := range map[string]func() segmenter{
		"dots":     func() segmenter { return &dots{} },
		"sentence": func() segmenter { return sentence.New("en") },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkAnswer(t, newAnswer("t", 0, newSegmenter)) })
		})
	}
}

func checkAnswer(t *rapid.T, a *answer) {
	var pieces []string // sentences, unique
	next := 0
	spoken := map[string]bool{}
	type clip struct {
		unit sentence.Unit
		span *span
	}
	var clips []clip // taken, and not begun
	take := func() {
		if u, s, ok := a.take(); ok {
			if s.start != u.Start || s.end != u.End || u.Start < 0 || u.End > len(a.text) || !strings.Contains(a.text, strings.TrimSpace(u.Text)) {
				t.Fatalf("%+v of %q", u, a.text)
			}
			clips = append(clips, clip{u, s})
		}
	}
	begin := func() {
		clips = slices.DeleteFunc(clips, func(c clip) bool { return c.span.isDropped })
		if len(clips) == 0 {
			return
		}
		c := clips[0]
		clips = clips[1:]
		for _, number := range regexp.MustCompile(`n\d+`).FindAllString(c.unit.Text, -1) {
			if spoken[number] {
				t.Fatalf("%q is spoken again", c.unit.Text)
			}
			if !strings.Contains(a.text, number+".") {
				t.Fatalf("%q is spoken, which %q lacks", number, a.text)
			}
			spoken[number] = true
		}
		c.span.isBegun = true
	}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "step") {
		case 0, 1, 2:
			next++
			pieces = append(pieces, fmt.Sprintf("This is the sentence with the number n%d. ", next))
			a.setText(strings.Join(pieces, ""))
		case 3: // a sentence is removed
			if len(pieces) > 0 {
				i := rapid.IntRange(0, len(pieces)-1).Draw(t, "removed")
				pieces = append(pieces[:i:i], pieces[i+1:]...)
				a.setText(strings.Join(pieces, ""))
			}
		case 4: // a sentence changes
			if len(pieces) > 0 {
				next++
				i := rapid.IntRange(0, len(pieces)-1).Draw(t, "changed")
				pieces[i] = fmt.Sprintf("Another long sentence now has the number n%d. ", next)
				a.setText(strings.Join(pieces, ""))
			}
		case 5: // a snapshot that is shorter for a moment
			text := strings.Join(pieces, "")
			a.setText(text[:rapid.IntRange(0, len(text)).Draw(t, "length")])
			a.setText(text)
		}
		t.Logf("text %s; spans %+v", short(a.text), a.shortSpans())
		for range rapid.IntRange(0, 2).Draw(t, "taken") {
			take()
		}
		for range rapid.IntRange(0, 2).Draw(t, "begun") {
			begin()
		}
	}
	a.end()
	for !a.isTaken() || len(clips) > 0 {
		take()
		begin()
	}
	end := 0
	for _, s := range a.spans {
		if s.start < end || s.end > len(a.text) {
			t.Fatalf("spans %+v of %q", s, a.text)
		}
		end = s.end
	}
	if end := a.takenEnd(); strings.TrimSpace(a.text[end:]) != "" && !a.isRegrowing {
		t.Fatalf("%q is never spoken", a.text[end:])
	}
}

// Words, sentences and characters without words.
func TestWordEnd(t *testing.T) {
	for _, tt := range []struct {
		text     string
		fraction float64
		want     int
	}{
		{"one two three", 0, 0},
		{"one two three", 0.2, 0},
		{"one two three", 0.5, 3},
		{"one two three", 0.6, 7},
		{"one two three", 1, 13},
		{"", 1, 0},
		{"今天天气很好", 0.5, 9},
		{"über\xffdas", 0.9, 0},
		{"über das", 0.7, 5},
	} {
		if got := wordEnd(tt.text, tt.fraction); got != tt.want {
			t.Errorf("%v of %q: %d, want %d", tt.fraction, tt.text, got, tt.want)
		}
	}
}

func short(text string) string {
	return strings.Join(regexp.MustCompile(`n\d+`).FindAllString(text, -1), " ")
}

func (a *answer) shortSpans() (list []string) {
	for _, s := range a.spans {
		list = append(list, fmt.Sprintf("%s(%d-%d %v)", short(a.text[s.start:s.end]), s.start, s.end, s.isBegun))
	}
	return list
}
