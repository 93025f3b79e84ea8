package slack

import (
	"regexp"
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
)

// firstPart returns what can be appended of the first text of a stream. The end of an open code block could look like its content,
// so the stream of a text with code begins without a text. The second version of the text then decides, because both have the
// finished beginning in common.
func firstPart(text string) string {
	if strings.Contains(text, "```") || strings.Contains(text, "~~~") {
		return ""
	}
	return text[:markup.Committed(text)]
}

// growth returns what can be appended for a text: what is the same as in the text before, and can't change its meaning any more. ok is
// false if the text doesn't begin with what was sent. The comparison with the version before excludes markup that was closed for the
// live view only and is open again in the next version.
func (s *stream) growth(text string) (suffix string, ok bool) {
	common := commonPrefix(s.last, text)
	s.last = text
	if s.isOpaque || !strings.HasPrefix(text, s.text) {
		return "", false
	}
	if to := beforeTable(text, markup.Committed(text[:common])); to > len(s.text) {
		return text[len(s.text):to], true
	}
	return "", true
}

// commonPrefix returns the length of the text with which both texts begin. It never ends within a character, because a part of one
// would be sent as invalid text.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && b[n]&0xC0 == 0x80 { // within a character
		n--
	}
	return n
}

// tableRule matches the line between the header and the rows of a table as markup writes it.
var tableRule = regexp.MustCompile(`^-+(?:\+-+)*$`)

// beforeTable returns the position to, or the beginning of the last code block if to is within that and the block may be a table that
// still grows: a wider cell changes the lines before it. The renderer draws tables as code blocks.
func beforeTable(text string, to int) int {
	trimmed := strings.TrimRight(text, " \n")
	body, isClosed := strings.CutSuffix(trimmed, "\n```")
	start := strings.LastIndex("\n"+body, "\n```\n")
	if !isClosed || start < 0 || start >= to {
		return to
	}
	lines := strings.SplitN(body[min(start+len("```\n"), len(body)):], "\n", 3)
	if len(lines) < 2 || tableRule.MatchString(lines[1]) || len(lines) == 2 && strings.Trim(lines[1], "-+") == "" {
		return start
	}
	return to
}
