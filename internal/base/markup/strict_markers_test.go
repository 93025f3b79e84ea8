package markup

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func readSlack(m Message) (string, error) {
	var shown strings.Builder
	for i, part := range strings.Split(m.Text, "```") {
		if i%2 == 1 {
			s, err := unescapeSlack(part)
			if err != nil {
				return "", err
			}
			shown.WriteString(s)
			continue
		}
		for _, line := range strings.SplitAfter(part, "\n") {
			content := strings.TrimLeft(line, " >")
			s, err := readLine(content, true)
			if err != nil {
				return "", fmt.Errorf("%w in %q", err, line)
			}
			shown.WriteString(line[:len(line)-len(content)] + s)
		}
	}
	if strings.Count(m.Text, "```")%2 == 1 {
		return "", fmt.Errorf("an open code block in %q", m.Text)
	}
	return shown.String(), nil
}

func readWhatsApp(m Message) (string, error) {
	var shown strings.Builder
	for i, part := range strings.Split(m.Text, "```") {
		if i%2 == 1 {
			shown.WriteString(part)
			continue
		}
		for _, line := range strings.SplitAfter(part, "\n") {
			s, err := readLine(line, false)
			if err != nil {
				return "", err
			}
			shown.WriteString(s)
		}
	}
	return shown.String(), nil
}

func unescapeSlack(s string) (string, error) {
	rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(s)
	if strings.ContainsAny(rest, "&<>") {
		return "", fmt.Errorf("not escaped: %q", s)
	}
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s), nil
}

var slackLink = regexp.MustCompile(`^<((?:https?|mailto|tel|tg):[^<>| ]+)(?:\|([^<>|\n]+))?>`)

// urlEnd returns the end of the URL that begins a text, without the punctuation behind it.
func urlEnd(s string) int {
	return len(strings.TrimRight(s[:strings.IndexAny(s+" ", " \n\t*")], ")_~.,"))
}

var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9]`)

// readLine reads a line of mrkdwn, or of WhatsApp's markup, which differs in links and escapes
// only.
func readLine(s string, isSlack bool) (string, error) {
	var shown strings.Builder
	previous := rune(0)
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if isSlack && r == '<' {
			m := slackLink.FindStringSubmatch(s)
			if m == nil {
				return "", fmt.Errorf("not a link: %q", s)
			}
			label := m[2]
			if label == "" {
				label = strings.ReplaceAll(m[1], "&", "&amp;")
				label = strings.ReplaceAll(label, "&amp;amp;", "&amp;")
			}
			inner, err := readLine(label, isSlack)
			if err != nil {
				return "", err
			}
			shown.WriteString(inner)
			s, previous = s[len(m[0]):], '>'
			continue
		}
		if !isSlack && !isWord(previous) && plainURL.MatchString(s) {
			end := urlEnd(s)
			shown.WriteString(s[:end])
			s, previous = s[end:], 'x'
			continue
		}
		if end := closing(s, r, previous, isSlack); end > 0 {
			inner := s[1:end]
			var err error
			if r != '`' {
				inner, err = readLine(inner, isSlack)
			} else if isSlack {
				inner, err = unescapeSlack(inner)
			}
			if err != nil {
				return "", err
			}
			shown.WriteString(inner)
			s, previous = s[end+1:], r
			continue
		}
		if isSlack && r == '&' {
			size = strings.IndexByte(s, ';') + 1
			if !slices.Contains([]string{"&amp;", "&lt;", "&gt;"}, s[:size]) {
				return "", fmt.Errorf("not escaped: %q", s)
			}
		}
		shown.WriteString(html.UnescapeString(s[:size]))
		s, previous = s[size:], r
	}
	return shown.String(), nil
}

// closing returns where the marker that begins a text is closed, or 0: it follows no letter, its
// content has no white space and no zero-width space at its edges, and no letter follows.
func closing(s string, marker, previous rune, isSlack bool) int {
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
			case isSlack && s[i] == '<':
				i += strings.IndexByte(s[i:]+">", '>')
				continue
			case !isSlack && plainURL.MatchString(s[i:]):
				i += urlEnd(s[i:])
			case s[i] == '`':
				before, _ := utf8.DecodeLastRuneInString(s[:i])
				i += closing(s[i:], '`', before, isSlack)
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
