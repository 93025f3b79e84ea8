package markup

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
)

// blank replaces a byte of the source that must not be seen yet. Parse leaves it out.
const blank = 0x01

var (
	// holdLine matches a last line whose meaning the next characters decide: a rule, an underline of a heading, the beginning of a list,
	// of a fence, of a quote, of a row or of a task.
	holdLine = regexp.MustCompile("^(?:[ \t>]|\\d{1,9}[.)][ \t])*(?:[-+*=_#|:`~> \t]*|\\d{1,9}[.)]?|[-+*][ \t]+\\[[ xX]?\\]?|\\[[^\\]]*\\]:.*)$")
	// holdEnd matches the end of a text that may become an HTML tag, an autolink or a character reference.
	holdEnd = regexp.MustCompile(`(?:<[A-Za-z/!][^<>\n]*|&#?[A-Za-z0-9]*|!)$`)
	// fenceLine matches the beginning of the line that closes a code block.
	fenceLine = regexp.MustCompile("^[ \t>]*(?:`+|~+)[ \t]*$")
)

// Heal returns a text that still grows in a form that can be shown now: it closes what is open, and holds back the characters whose meaning
// the next ones decide. Without it about a quarter of the beginnings of a text show markers such as ** that the whole text doesn't have.
//
// The complete text must not be healed, since markers that stay open are text then. Heal only blanks bytes in place, cuts the end and
// appends, so that positions in the result are positions in the text.
func Heal(source string) string {
	lastLine := source[strings.LastIndexByte(source, '\n')+1:]
	if strings.TrimSpace(lastLine) == "" && blankLineEnd.MatchString(source) {
		return source // the last paragraph is complete
	}
	start, isCode := openBlock(source)
	if isCode {
		if fenceLine.MatchString(lastLine) {
			return source[:len(source)-len(lastLine)]
		}
		return source
	}
	if holdLine.MatchString(lastLine) {
		source = source[:len(source)-len(lastLine)]
		start, _ = openBlock(source)
	}
	source = holdRows(source, start)
	h := healer{source: []byte(source), start: start}
	return h.heal()
}

var blankLineEnd = regexp.MustCompile(`\n[ \t]*\n[ \t]*$`)

// openBlock returns where the text of the last block begins, and whether it is code, whose text has no markers.
func openBlock(source string) (start int, isCode bool) {
	n := ast.Node(markdown.Parse(gtext.NewReader([]byte(source))))
	for c := n.LastChild(); c != nil && c.Type() == ast.TypeBlock; c = n.LastChild() {
		n = c
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		return len(source), true
	case *extast.TableCell:
		if n.Lines().Len() == 0 {
			return strings.LastIndexByte(source, '|') + 1, false
		}
	case *ast.Document:
		return 0, false
	}
	if lines := n.Lines(); lines.Len() > 0 {
		return lines.At(0).Start, false
	}
	return len(source), false
}

// holdRows cuts the rows of a table whose second line, which makes it a table, is not there yet.
func holdRows(source string, start int) string {
	if start > len(source) || strings.HasSuffix(strings.TrimRight(source[:start], " \t"), "|") {
		return source // the block is a cell: the table is there
	}
	block := strings.TrimSuffix(source[start:], "\n")
	line := block[strings.LastIndexByte(block, '\n')+1:]
	if !strings.HasPrefix(strings.TrimLeft(line, " \t>"), "|") {
		return source
	}
	return source[:start+len(block)-len(line)]
}

// A healer closes what is open in the last block of a text.
type healer struct {
	source []byte
	start  int      // where the block's text begins
	open   []marker // markers without their closing ones, outermost first
}

// A marker is a run of one of * _ ~, or a bracket.
type marker struct {
	char  byte
	count int
	pos   int
}

func (h *healer) heal() string {
	h.cutEnd()
	closer := h.scan()
	content := string(h.source)
	for i := len(h.open) - 1; i >= 0; i-- {
		m := h.open[i]
		switch {
		case m.char == '[' && h.isImage(m.pos):
			content = content[:m.pos-1]
			closer = ""
		case closer == "" && strings.Trim(content[m.pos:], "*_~[!\x01 \t\n") == "":
			content = content[:m.pos]
		case m.char == '[' && m.pos > 0 && content[m.pos-1] == '_':
			content, closer = content[:m.pos], "" // a blank would keep the underscore from closing
		case m.char == '[':
			content = content[:m.pos] + string(rune(blank)) + content[m.pos+1:]
		case closer == "" && endsWith(content, m.char) || m.char == '~' && strings.HasSuffix(closer, "~"):
			// Another marker of its kind would make a longer run, which means something else. So the opener is hidden.
			content = content[:m.pos] + strings.Repeat(string(rune(blank)), m.count) + content[m.pos+m.count:]
		default:
			closer += strings.Repeat(string(m.char), m.count)
		}
	}
	if closer == "" {
		return content
	}
	content = strings.TrimRight(content, " \t\n")
	if closer[0] == '`' && endsWith(content, '`') {
		closer = " " + closer // the space is not a part of the code
	}
	return content + closer
}

// endsWith reports whether a text ends with a character, apart from white space.
func endsWith(content string, c byte) bool {
	content = strings.TrimRight(content, " \t\n")
	return content != "" && content[len(content)-1] == c
}

// isImage reports whether the bracket at a position begins an image.
func (h *healer) isImage(bracket int) bool {
	return bracket > h.start && h.source[bracket-1] == '!' && !h.escaped(bracket-1)
}

// cutEnd holds back markers at the end, which may be halves, and what may become a tag or a character reference.
func (h *healer) cutEnd() {
	for {
		before := len(h.source)
		tail := h.source[h.start:]
		if loc := holdEnd.FindIndex(tail); loc != nil && !h.escaped(h.start+loc[0]) {
			h.source = h.source[:h.start+loc[0]]
		}
		for len(h.source) > h.start && strings.IndexByte("*_~`[\\", h.source[len(h.source)-1]) >= 0 && !h.escaped(len(h.source)-1) {
			h.source = h.source[:len(h.source)-1]
		}
		if len(h.source) == before {
			return
		}
	}
}

// escaped reports whether the byte at a position follows an odd number of backslashes.
func (h *healer) escaped(at int) bool {
	n := 0
	for at-n-1 >= h.start && h.source[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// scan finds the markers that stay open. It returns the end of an open code span.
func (h *healer) scan() string {
	for i := h.start; i < len(h.source); {
		switch c := h.source[i]; c {
		case '\\':
			i += 2
		case '`':
			count := h.runLength(i)
			end := h.codeEnd(i+count, count)
			if end < 0 && bytes.IndexByte(h.source[i:], '\n') >= 0 {
				// Code rarely spans lines. What follows may be markup if the code is never closed.
				end = i + count
				if i == h.start || h.source[i-1] != '_' { // a blank would keep the underscore from closing
					copy(h.source[i:], bytes.Repeat([]byte{blank}, count))
				}
			}
			if end < 0 {
				return strings.Repeat("`", count)
			}
			i = end
		case '<':
			i = h.skipTag(i)
		case '[':
			h.open = append(h.open, marker{char: '[', count: 1, pos: i})
			i++
		case ']':
			i = h.closeBracket(i)
		case '*', '_', '~':
			count := h.runLength(i)
			h.delimiter(marker{char: c, count: count, pos: i})
			i += count
		case 'h':
			i += max(1, len(urlStart.Find(h.source[i:])))
		default:
			i++
		}
	}
	return ""
}

// urlStart matches a URL in text, whose characters are not markers. An asterisk ends it.
var urlStart = regexp.MustCompile("^https?://[-a-zA-Z0-9@:%._+~#=]+\\.[a-z]+(?:[:/#?][-a-zA-Z0-9@:%_+.~#$!?&/=();,'^{}`]*)?")

func (h *healer) runLength(at int) int {
	n := 1
	for at+n < len(h.source) && h.source[at+n] == h.source[at] {
		n++
	}
	return n
}

// codeEnd returns the position behind the run of exactly count backticks that closes a code span, or -1.
func (h *healer) codeEnd(from, count int) int {
	for i := from; i < len(h.source); i++ {
		if h.source[i] != '`' {
			continue
		}
		n := h.runLength(i)
		if n == count {
			return i + n
		}
		i += n - 1
	}
	return -1
}

func (h *healer) skipTag(at int) int {
	for i := at + 1; i < len(h.source); i++ {
		switch h.source[i] {
		case '>':
			return i + 1
		case '<', '\n', ' ':
			return at + 1
		}
	}
	return at + 1
}

// closeBracket handles a bracket that closes. If the destination of a link is incomplete, only the label stays; an incomplete image goes.
func (h *healer) closeBracket(at int) int {
	b := len(h.open) - 1
	for b >= 0 && h.open[b].char != '[' {
		b--
	}
	if b < 0 {
		return at + 1
	}
	opener := h.open[b]
	end := at + 1
	switch {
	case end < len(h.source) && h.source[end] == '(':
		end = h.destinationEnd(end)
	case end < len(h.source):
		h.open = append(h.open[:b], h.open[b+1:]...) // brackets that are text
		return end
	default:
		end = -1
	}
	if end >= 0 {
		h.open = h.open[:b] // markers that stay open within a label are text
		return end
	}
	if !h.isImage(opener.pos) {
		h.source = h.source[:at]
	}
	return len(h.source) // an image stays open, and is cut
}

// destinationEnd returns the position behind the parenthesis that closes a link's destination, or -1.
func (h *healer) destinationEnd(at int) int {
	depth := 0
	for i := at; i < len(h.source); i++ {
		switch h.source[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// delimiter matches a run of * _ or ~ with the ones before, by the rules of CommonMark, section 6.2.
func (h *healer) delimiter(m marker) {
	before, _ := utf8.DecodeLastRune(h.source[h.start:m.pos])
	after, _ := utf8.DecodeRune(h.source[m.pos+m.count:])
	atStart, atEnd := m.pos == h.start, m.pos+m.count == len(h.source)
	spaceBefore, spaceAfter := atStart || unicode.IsSpace(before), atEnd || unicode.IsSpace(after)
	punctBefore, punctAfter := !atStart && isPunct(before), !atEnd && isPunct(after)
	left := !spaceAfter && (!punctAfter || spaceBefore || punctBefore)
	right := !spaceBefore && (!punctBefore || spaceAfter || punctAfter)
	canOpen, canClose := left, right
	if m.char == '_' {
		canOpen, canClose = left && (!right || punctBefore), right && (!left || punctAfter)
	}
	for i := len(h.open) - 1; canClose && i >= 0 && m.count > 0; i-- {
		o := &h.open[i]
		if o.char != m.char || m.char == '~' && o.count != m.count {
			continue
		}
		used := min(o.count, m.count, 2)
		if m.char == '~' {
			used = m.count
		}
		o.count -= used
		m.count -= used
		h.open = h.open[:i+1]
		if o.count == 0 {
			h.open = h.open[:i]
		} else {
			i++ // the rest of this opener may match as well
		}
	}
	if m.char == '~' && (m.count > 2 || m.count == 1 && isWord(before)) {
		return // more are text, and one after a letter is a range of numbers rather than a marker
	}
	if canOpen && m.count > 0 {
		h.open = append(h.open, m)
	}
}

func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
