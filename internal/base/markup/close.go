package markup

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"
)

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
