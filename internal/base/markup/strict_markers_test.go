package markup

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

func readWhatsApp(m Message) (string, error) {
	var shown strings.Builder
	for i, part := range strings.Split(m.Text, "```") {
		if i%2 == 1 {
			shown.WriteString(part)
			continue
		}
		for _, line := range strings.SplitAfter(part, "\n") {
			shown.WriteString(readLine(line))
		}
	}
	return shown.String(), nil
}

// urlEnd returns the end of the URL that begins a text, without the punctuation behind it.
func urlEnd(s string) int {
	return len(strings.TrimRight(s[:strings.IndexAny(s+" ", " \n\t*")], ")_~.,"))
}

var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9]`)

// readLine reads a line of WhatsApp's markup.
func readLine(s string) string {
	var shown strings.Builder
	previous := rune(0)
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if !isWord(previous) && plainURL.MatchString(s) {
			end := urlEnd(s)
			shown.WriteString(s[:end])
			s, previous = s[end:], 'x'
			continue
		}
		if end := closing(s, r, previous); end > 0 {
			inner := s[1:end]
			if r != '`' {
				inner = readLine(inner)
			}
			shown.WriteString(inner)
			s, previous = s[end+1:], r
			continue
		}
		shown.WriteString(s[:size])
		s, previous = s[size:], r
	}
	return shown.String()
}

// closing returns where the marker that begins a text is closed, or 0: it follows no letter, its
// content has no white space and no zero-width space at its edges, and no letter follows.
func closing(s string, marker, previous rune) int {
	if !strings.ContainsRune("*_~`", marker) || isWord(previous) {
		return 0
	}
	next, _ := utf8.DecodeRuneInString(s[1:])
	if isBlank(next) || next == '\u200b' || next == utf8.RuneError {
		return 0
	}
	for i := 1; i < len(s); i++ {
		if marker != '`' { // links, URLs and code are read first
			switch {
			case plainURL.MatchString(s[i:]):
				i += urlEnd(s[i:])
			case s[i] == '`':
				before, _ := utf8.DecodeLastRuneInString(s[:i])
				i += closing(s[i:], '`', before)
				continue
			}
		}
		if i < 2 || i >= len(s) || rune(s[i]) != marker {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+1:])
		if !isBlank(before) && !isWord(after) && !strings.HasPrefix(s[i+1:], joiner) {
			return i
		}
	}
	return 0
}
