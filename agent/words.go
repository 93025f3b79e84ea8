package agent

import (
	"errors"
	"fmt"
	"strings"
)

// ErrQuote is returned for an unmatched quotation mark.
var ErrQuote = errors.New("unmatched quotation mark")

// Words splits a line at white space as a shell does. Single or double quotes group words. A backslash before white space, a quotation mark
// or a backslash makes that character literal, except in single quotes.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for i, c := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(c)
		case c == '\\' && quote != '\'' && escapes(line[i+1:]):
			in, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			in, quote = true, c
		case strings.ContainsRune(space, c):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, ErrQuote
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

const space = " \t\r\n"

// escapes reports whether a backslash before rest makes its first character literal.
func escapes(tail string) bool {
	return tail != "" && strings.ContainsRune(space+`'"\`, rune(tail[0]))
}

// Command splits a command line into the program and its arguments. Since no shell runs it, operators such as | and > are errors; otherwise
// the program would get them as arguments.
func Command(line string) ([]string, error) {
	words, err := Words(line)
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", line, err)
	}
	for _, w := range words {
		if strings.Trim(w, "|&;<>") == "" && w != "" {
			return nil, fmt.Errorf("command %s: %s needs a shell; write sh -c '…'", line, w)
		}
	}
	return words, nil
}
