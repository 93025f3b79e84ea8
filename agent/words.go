package agent

import (
	"errors"
	"fmt"
	"strings"
)

// ErrQuote says that a quotation mark has no partner.
var ErrQuote = errors.New("a quotation mark is not closed")

// Words splits a line at white space, as a shell does: what stands in single or double quotes is together, and a
// backslash takes what follows as it is, where that is white space, a quotation mark or a backslash. In single quotes it
// is a character like any other.
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

// escapes reports whether what follows a backslash is to be taken as it is.
func escapes(rest string) bool {
	return rest != "" && strings.ContainsRune(space+`'"\`, rune(rest[0]))
}

// Command takes a command line apart. What a shell would act on is refused rather than handed to the program as a word.
func Command(line string) ([]string, error) {
	words, err := Words(line)
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", line, err)
	}
	for _, w := range words {
		if strings.Trim(w, "|&;<>") == "" && w != "" {
			return nil, fmt.Errorf("command %s: there is no shell that knows %s; for one write sh -c '…'", line, w)
		}
	}
	return words, nil
}
