package markup

import (
	"slices"
	"strings"
)

// boundary returns the last position of a source at which its blocks can be parsed apart: the
// blocks before it never change again, and those behind it don't depend on them, except for
// definitions of references. Without such a position it is 0.
//
// It is the beginning of a paragraph or a heading at the left edge behind an empty line, which ends
// every list, quote and table. Code and HTML that contain empty lines are skipped. The scan is
// about a hundred times faster than parsing, and gives up when it isn't certain.
func boundary(source string) int {
	last := 0
	var f fence
	isAfterBlank := false
	for at := 0; at < len(source); {
		end := at + strings.IndexByte(source[at:], '\n') + 1
		if end == at {
			end = len(source)
		}
		line := source[at:end]
		content := strings.Trim(line, " \t\n\r")
		// The order matters: code is code whatever its lines look like.
		switch {
		case content == "":
			isAfterBlank = true
			at = end
			continue
		case f.count > 0 && f.column > 0 && line[0] != ' ' && line[0] != '\t':
			return last // the list or the quote around the code may have ended, and the code with it
		case f.count > 0:
			if !f.close(line) {
				return last
			}
		case content[0] == '<' && opensHTML(content):
			return last
		case isAfterBlank && startsBlock(line):
			last = at
		}
		// The line that closes a block of code would open one if it were looked at again.
		if f.count == 0 && !f.closed {
			f.open(line)
		}
		f.closed = false
		isAfterBlank = false
		at = end
	}
	return last
}

// A fence is a code block that is open. Its column is 0 if it begins at the left edge; others may
// be in a list or a quote.
type fence struct {
	char          byte
	count, column int
	closed        bool // the line just read has closed it
}

// open begins a code block if a line does.
func (f *fence) open(line string) {
	content := strings.TrimLeft(line, " \t>")
	count := run(content)
	if count < 3 || content[0] == '`' && strings.Contains(content[count:], "`") {
		return
	}
	*f = fence{char: content[0], count: count, column: len(line) - len(content)}
}

// close ends the code block if a line does. It returns false if that isn't certain.
func (f *fence) close(line string) bool {
	content := strings.TrimLeft(line, " \t>")
	column := len(line) - len(content)
	if run(content) < f.count || content[0] != f.char || strings.Trim(content, "`~ \t\r\n") != "" {
		return true // it's code
	}
	// A fence in a list or a quote ends at about the same column, one at the left edge within three.
	if f.column > 0 {
		if column > f.column+3 {
			return false
		}
	} else if column > 3 || strings.ContainsAny(line[:column], "\t>") {
		return true
	}
	*f = fence{closed: true}
	return true
}

// run returns the length of the run of backticks or tildes at the beginning of a line.
func run(line string) int {
	n := 0
	for n < len(line) && (line[0] == '`' || line[0] == '~') && line[n] == line[0] {
		n++
	}
	return n
}

// opensHTML reports whether a line may begin HTML that continues after an empty line (CommonMark,
// section 4.6, kinds 1 to 5).
func opensHTML(content string) bool {
	lower := strings.ToLower(content[:min(len(content), 10)])
	return slices.ContainsFunc([]string{"<!", "<?", "<script", "<pre", "<style", "<textarea"}, func(start string) bool { return strings.HasPrefix(lower, start) || strings.HasPrefix(start, lower) })
}

// startsBlock reports whether a line at the left edge begins a paragraph or a heading, whatever
// follows in it.
func startsBlock(line string) bool {
	switch c := line[0]; {
	case c >= 0x80, c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return true
	case c == '#':
		return len(line) > 1
	// A single asterisk may be an item of the list above, and three may be a rule.
	case c == '*':
		return len(line) > 2 && line[1] == '*' && isAlnum(line[2])
	}
	return false
}

// isAlnum reports whether a byte is a letter or a digit, or a part of a character beyond ASCII.
func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
