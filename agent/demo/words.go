package demo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
)

// readingSpeed is the average for adults who read silently, in words a minute. It is only for the estimate in
// the answer.
const readingSpeed = 240

// shownWords is the number of frequent words in the answer.
const shownWords = 6

// statistics describe a text. Its counts are of words as wordsOf splits them, and of characters (code points),
// including white space.
type statistics struct {
	words, distinct, sentences, characters int
	longest                                string
	average                                float64 // letters a word
	top                                    []frequency
}

// frequency is a word in lower case, and how often it occurs.
type frequency struct {
	word string
	n    int
}

// wordsOf splits a text into words: runs of letters, digits, apostrophes and hyphens with at least one letter
// or digit. So "don't" and "half-way" are one word each, and a dash between two words is none.
func wordsOf(text string) []string {
	fields := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '’' && r != '-'
	})
	return slices.DeleteFunc(fields, func(w string) bool {
		return !strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
}

// sentenceEnd matches the punctuation at the end of a sentence. White space or the end of the text must follow,
// so that 3.14 isn't the end of one.
var sentenceEnd = regexp.MustCompile(`[.!?…。！？]+(\s|$)`)

// analyse computes the statistics of a text. Frequent words are compared in lower case and sorted by frequency,
// then by length, then by the alphabet: without a complete order the answer would change from turn to turn,
// since Go iterates over maps in random order.
func analyse(text string) statistics {
	st := statistics{characters: utf8.RuneCountInString(text)}
	counts := map[string]int{}
	letters := 0
	for _, w := range wordsOf(text) {
		st.words++
		n := utf8.RuneCountInString(w)
		letters += n
		if n > utf8.RuneCountInString(st.longest) {
			st.longest = w
		}
		counts[strings.ToLower(w)]++
	}
	st.distinct = len(counts)
	if st.words > 0 {
		st.average = float64(letters) / float64(st.words)
		st.sentences = max(1, len(sentenceEnd.FindAllString(text, -1)))
	}
	for w, n := range counts {
		st.top = append(st.top, frequency{w, n})
	}
	slices.SortFunc(st.top, func(a, b frequency) int {
		return cmp.Or(b.n-a.n, utf8.RuneCountInString(b.word)-utf8.RuneCountInString(a.word), strings.Compare(a.word, b.word))
	})
	st.top = st.top[:min(len(st.top), shownWords)]
	return st
}

// words describes the text of the message. It is the skill for messages that no other skill can answer, so it
// says first that it can't answer, and then shows what it has counted. Attachments are listed by name, but not
// read.
func words(s *stage, q question) {
	st := analyse(q.text)
	s.think("I can't compute anything from this message, and I have no model that could invent an answer. " +
		"I can describe the text honestly, so I'll do that.")
	s.status("Reading your message…")
	t := s.call("word_count", "Count words", map[string]any{"text": clip(q.text, 80), "characters": st.characters})
	largest := 0
	for _, f := range st.top {
		largest = max(largest, f.n)
	}
	for _, f := range st.top {
		t.print(bar(f, largest))
	}
	t.print(fmt.Sprintf("%s, %d distinct", plural(st.words, "word"), st.distinct))
	t.end()
	s.status(fmt.Sprintf("Read %s", plural(st.words, "word")))

	kind := "statement"
	if strings.HasSuffix(q.text, "?") {
		kind = "question"
	}
	s.say(fmt.Sprintf("I'm the **demo agent**: I have no model behind me, so I can't answer a %s like this one. I did read it, though:\n\n", kind))
	rows := [][]string{
		{"Words", fmt.Sprintf("%d, of them %d distinct", st.words, st.distinct)},
		{"Sentences", fmt.Sprint(st.sentences)},
		{"Characters", fmt.Sprint(st.characters)},
		{"Longest word", clip(st.longest, 60)},
		{"Letters a word", fmt.Sprintf("%.1f", st.average)},
		{"Time to read", fmt.Sprintf("%.0f s", float64(st.words)*60/readingSpeed)},
	}
	for _, p := range q.parts {
		rows = append(rows, []string{"Attached", describe(p)})
	}
	s.say(table([]string{"What", "Value"}, rows))
	if len(st.top) > 0 {
		var b strings.Builder
		for _, f := range st.top {
			b.WriteString(bar(f, largest) + "\n")
		}
		s.say("\nThe most frequent words:\n\n```text\n" + b.String() + "```\n")
	}
	s.say("\nSend `help` to see what I can compute.\n")
}

// bar returns a line of a bar chart. largest is the count of the most frequent word, which has the full width.
// The bar of any word has at least one character.
func bar(f frequency, largest int) string {
	const width, longest = 20, 16
	word := clip(f.word, longest)
	pad := strings.Repeat(" ", max(0, longest-utf8.RuneCountInString(word)))
	return fmt.Sprintf("%s%s %s %d", word, pad, strings.Repeat("█", max(1, f.n*width/max(largest, 1))), f.n)
}

// describe returns the name and type of an attached part for the table of words.
func describe(p event.Part) string {
	if p.Media == nil {
		return string(p.Kind)
	}
	name := cmp.Or(p.Media.Name, "a file")
	if p.Media.MIME != "" {
		name += " (" + p.Media.MIME + ")"
	}
	return name
}

// clip shortens a text to n characters, the last of which is then an ellipsis. It counts code points, so it
// never splits one.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
