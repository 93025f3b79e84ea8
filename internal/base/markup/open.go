package markup

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
)

// openBlock returns where the text of the last block begins, and whether it is code, whose text has
// no markers.
func openBlock(source string) (start int, isCode bool) {
	base := boundary(source)
	start, isCode = openBlockOf(source[base:])
	return base + start, isCode
}

func openBlockOf(source string) (start int, isCode bool) {
	n := ast.Node(markdown.Parse(gtext.NewReader([]byte(source))))
	for c := n.LastChild(); c != nil && c.Type() == ast.TypeBlock; c = n.LastChild() {
		n = c
	}
	switch n := n.(type) {
	// HTML counts as code, because its text has no markers either.
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		return len(source), true
	// A cell is a block for its markers: they can't span cells.
	case *extast.TableCell:
		if n.Lines().Len() == 0 {
			return strings.LastIndexAny(source, "|\n") + 1, false
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
