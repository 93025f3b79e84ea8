package markup

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"
)

// hiddenMark begins the list of markers that Parse must not show, at the end of a healed text.
// Blanks in their place would change what the markers next to them mean.
const hiddenMark = "\x01"

var (
	// holdLine matches a last line whose meaning the next characters decide: a rule, an underline
	// of a heading, the beginning of a list, of a fence, of a quote, of a row or of a task.
	holdLine = regexp.MustCompile("^(?:[ \t>]|\\d{1,9}[.)][ \t])*" + // the marks of lists and quotes around it
		"(?:[-+*=_#|:`~> \t]*|\\d{1,9}[.)]?|[-+*][ \t]+\\[[ xX]?\\]?|\\[[^\\]]*\\]:.*)$")
	// holdEnd matches the end of a text that may become an HTML tag, an autolink or a character
	// reference.
	holdEnd = regexp.MustCompile(`(?:<[A-Za-z/!][^<>\n]*|&#?[A-Za-z0-9]*|!)$`)
	// fenceLine matches the beginning of the line that closes a code block.
	fenceLine = regexp.MustCompile("^[ \t>]*(?:`+|~+)[ \t]*$")
)

// Heal returns a text that still grows in a form that can be shown now: it closes what is open, and
// holds back the characters whose meaning the next ones decide. Without it about a quarter of the
// beginnings of a text show markers such as ** that the whole text doesn't have.
//
// The complete text must not be healed, since markers that stay open are text then. Heal only cuts
// the end and appends, so that positions in the result are positions in the text.
func Heal(source string) string {
	lastLine := source[strings.LastIndexByte(source, '\n')+1:]
	if strings.TrimSpace(lastLine) == "" && blankLineEnd.MatchString(source) {
		return source // the last paragraph is complete
	}
	start, isCode := openBlock(source)
	// Markers mean nothing in code. Only the line that may end the code is held back.
	if isCode {
		if fenceLine.MatchString(lastLine) {
			return source[:len(source)-len(lastLine)]
		}
		return source
	}
	// Without its last line, the text may end in another block.
	if holdLine.MatchString(lastLine) {
		source = source[:len(source)-len(lastLine)]
		start, _ = openBlock(source)
	}
	source = holdRows(source, start)
	h := healer{source: []byte(source), start: start}
	return h.heal()
}

// blankLineEnd matches an empty line at the end. It ends paragraphs, so nothing before it can
// change, except in code.
var blankLineEnd = regexp.MustCompile(`\n[ \t]*\n[ \t]*$`)

// A healer closes what is open in the last block of a text.
type healer struct {
	source []byte
	start  int      // where the block's text begins
	open   []marker // markers without their closing ones, outermost first
	hidden []int    // markers that must not be shown, by position
}

// A marker is a run of one of * _ ~, or a bracket.
type marker struct {
	char  byte
	count int
	pos   int
}

// heal closes the markers that are open, the innermost first: in any other order the result would
// not nest, and Markdown would show them.
func (h *healer) heal() string {
	h.cutEnd()
	closer := h.scan()
	content := string(h.source)
	for i := len(h.open) - 1; i >= 0; i-- {
		m := h.open[i]
		switch {
		// An image without its address can't be shown, and its description alone would move later.
		case m.char == '[' && h.isImage(m.pos):
			content = content[:m.pos-1]
			closer, h.hidden = "", slices.DeleteFunc(h.hidden, func(at int) bool { return at >= m.pos-1 })
		// Nothing but markers follows, so there is nothing to close yet.
		case closer == "" && strings.Trim(content[m.pos:], "*_~[! \t\n") == "":
			content = content[:m.pos]
		// The label of a link is shown as text until its address is complete.
		case m.char == '[':
			h.hide(m.pos, 1)
		case closer == "" && endsWith(content, m.char) || closer != "" && m.count < 3 && m.char != '*' && closer[len(closer)-1] == m.char,
			m.count == 2 && strings.HasSuffix(closer, "**") && m.char == '*':
			// Another marker of its kind would make a longer run, which means something else. So
			// the opener is hidden.
			h.hide(m.pos, m.count)
		default:
			closer += strings.Repeat(string(m.char), m.count)
		}
	}
	// A marker that follows white space would open rather than close.
	if closer != "" {
		content = strings.TrimRight(content, " \t\n")
		if closer[0] == '`' && endsWith(content, '`') {
			closer = " " + closer // the space is not a part of the code
		}
	}
	return content + closer + hiddenList(h.hidden)
}

// hide keeps markers that can be neither closed nor cut, because text follows them, from being
// shown.
func (h *healer) hide(at, count int) {
	for i := range count {
		h.hidden = append(h.hidden, at+i)
	}
}

// hiddenList writes positions for Parse.
func hiddenList(positions []int) string {
	slices.Sort(positions)
	list, separator := "", hiddenMark
	for _, at := range positions {
		list += separator + strconv.Itoa(at)
		separator = ","
	}
	return list
}

// hiddenEnd matches the list of hidden markers.
var hiddenEnd = regexp.MustCompile(hiddenMark + `\d+(?:,\d+)*$`)

// splitHidden returns a healed text without its list, and the positions in it.
func splitHidden(healed string) (source string, positions []int) {
	at := strings.LastIndex(healed, hiddenMark)
	if at < 0 || !hiddenEnd.MatchString(healed[at:]) {
		return healed, nil
	}
	for s := range strings.SplitSeq(healed[at+1:], ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return healed, nil // a number that Heal didn't write
		}
		positions = append(positions, n)
	}
	return healed[:at], positions
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

// cutEnd holds back markers at the end, which may be halves, and what may become a tag or a
// character reference.
func (h *healer) cutEnd() {
	// Cutting a marker may leave the half of another one at the end, as in the text [**.
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

// topFence matches a line that opens or closes a code block outside of lists and quotes.
var topFence = regexp.MustCompile("(?m)^ {0,3}(`{3,}|~{3,})")

// Close returns a text with its code block closed if it ends within one, so that what is added after an empty line is not code. Blocks
// in lists and quotes end by themselves there.
func Close(source string) string {
	if !endsInCode(source) {
		return source
	}
	// The fence that opened the block is one of those in the text; the last that has an effect is the right one.
	for _, m := range topFence.FindAllStringSubmatch(source, -1) {
		closed := strings.TrimSuffix(source, "\n") + "\n" + m[1]
		if !endsInCode(closed) {
			return closed
		}
	}
	return source
}

// endsInCode reports whether a paragraph that is added to a text becomes code.
func endsInCode(source string) bool {
	n := markdown.Parse(gtext.NewReader([]byte(source + "\n\nx"))).LastChild()
	return n != nil && n.Kind() == ast.KindFencedCodeBlock
}
