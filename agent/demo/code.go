package demo

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// block is a fenced piece of code in a message. language is the word after the opening fence, and may be empty.
type block struct{ language, text string }

// fence matches a block between lines of three backticks. A block that isn't closed extends to the end of the
// text.
var fence = regexp.MustCompile("(?s)```([^\\s`]*)[^\\S\\n]*\\n(.*?)(?:\\n?```|$)")

// blocks returns the pieces of code in a message, without blank ones.
func blocks(text string) []block {
	var list []block
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if strings.TrimSpace(m[2]) != "" {
			list = append(list, block{m[1], m[2]})
		}
	}
	return list
}

// guesses match text that is typical of one language, the most reliable first. JavaScript is after TypeScript,
// because its patterns match most TypeScript as well.
var guesses = []struct {
	language string
	like     *regexp.Regexp
}{
	{"go", regexp.MustCompile(`(?m)^(package \w+$|func .*\{$)|:=`)},
	{"python", regexp.MustCompile(`(?m)^\s*(def \w+\(.*\):|import \w+$|from \w+ import |print\()`)},
	{"rust", regexp.MustCompile(`\bfn \w+|\blet mut\b`)},
	{"typescript", regexp.MustCompile(`\binterface \w+ \{|: (string|number|boolean)\b`)},
	{"javascript", regexp.MustCompile(`\b(const|let|function)\b|=>`)},
	{"sql", regexp.MustCompile(`(?i)\bselect\b.+\bfrom\b`)},
	{"json", regexp.MustCompile(`^\s*[{\[]\s*("|\{|\[|\d)`)},
	{"c", regexp.MustCompile(`(?m)^#include\b`)},
	{"sh", regexp.MustCompile(`(?m)^(\$ |#!/bin/|export \w+=)`)},
}

// guess returns the likely language of a piece of code, or "text". It looks only for the patterns of guesses,
// so it may be wrong; the answer therefore calls it a guess.
func guess(text string) string {
	for _, g := range guesses {
		if g.like.MatchString(text) {
			return g.language
		}
	}
	return "text"
}

// code describes the first block of code. It counts the lines, checks the brackets, and shows the code with
// line numbers. Each of the two steps is a tool call. A mistake in the brackets fails the second one, so that a
// viewer sees a failed tool next to a successful one.
func code(s *stage, q question) {
	list := blocks(q.text)
	b := list[0]
	source := "as the fence says"
	if b.language == "" {
		b.language, source = guess(b.text), "judging by its patterns"
	}
	lines := strings.Split(b.text, "\n")
	s.think(fmt.Sprintf("There is code in the message, %s, %s. I can't run it, but I can read it: count its lines and see whether every bracket is closed.", b.language, source))
	s.status("Reading the code…")
	t := s.call("read_code", fmt.Sprintf("Read %s of %s", plural(len(lines), "line"), b.language), map[string]any{"language": b.language, "lines": len(lines)})
	blank, longest := 0, 0
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			blank++
		}
		longest = max(longest, utf8.RuneCountInString(l))
	}
	t.print(fmt.Sprintf("%s, %d of them blank; the longest has %s", plural(len(lines), "line"), blank, plural(longest, "character")))
	t.end()

	s.status("Checking brackets…")
	t = s.call("brackets", "Check that every bracket is closed", map[string]string{"language": b.language})
	wrong := brackets(b.text)
	verdict := "all closed"
	if wrong != "" {
		verdict = wrong
		t.complain(wrong)
		t.fail(wrong)
	} else {
		t.print(verdict)
		t.end()
	}
	s.status(fmt.Sprintf("Read %s", plural(len(lines), "line")))
	s.say(fmt.Sprintf("This is **%s**, %s.\n\n", b.language, source))
	s.say(table([]string{"What", "Value"}, [][]string{
		{"Lines", fmt.Sprintf("%d, of them %d blank", len(lines), blank)},
		{"Longest line", plural(longest, "character")},
		{"Brackets", verdict},
		{"Pieces of code in your message", fmt.Sprint(len(list))},
	}))
	var n strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&n, "%3d  %s\n", i+1, l)
	}
	s.say("\nHere it is with numbers:\n\n```" + b.language + "\n" + n.String() + "```\n")
}

// brackets describes the first mistake in the brackets of a text, or returns "". It skips quoted strings, with
// backslash escapes except between backticks. Single and double quotes end at the end of the line, since an
// apostrophe in a comment isn't a quote.
//
// It knows no language's comments or regular expressions, so brackets in them count. The errors name lines,
// counted from 1.
func brackets(text string) string {
	type open struct {
		r    rune
		line int
	}
	closing := map[rune]rune{')': '(', ']': '[', '}': '{'}
	var stack []open
	line, quote, escaped := 1, rune(0), false
	for _, r := range text {
		switch {
		case r == '\n':
			line++
			if quote != '`' {
				quote = 0 // it may be an apostrophe in a comment
			}
			escaped = false
		case escaped:
			escaped = false
		case quote != 0:
			if r == '\\' && quote != '`' {
				escaped = true
			} else if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'' || r == '`':
			quote = r
		case r == '(' || r == '[' || r == '{':
			stack = append(stack, open{r, line})
		case closing[r] != 0:
			if len(stack) == 0 {
				return fmt.Sprintf("line %d closes %c, which nothing opened", line, r)
			}
			last := stack[len(stack)-1]
			if last.r != closing[r] {
				return fmt.Sprintf("line %d closes %c where %c of line %d is open", line, r, last.r, last.line)
			}
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 {
		return fmt.Sprintf("%c of line %d is never closed", stack[len(stack)-1].r, stack[len(stack)-1].line)
	}
	return ""
}
