package main

import (
	"bytes"
	"go/ast"
	"os"

	"golang.org/x/tools/go/packages"
)

// commentShare is the smallest share of lines, in percent, that are comments. Raise it when the figure has gone up.
const commentShare = 8.5

// comments measures the share of lines that are nothing but a comment. Licences and directives are not told apart: the tree has few.
func (t *tree) comments() figure {
	fig := figure{name: "comments", limit: commentShare, least: true, of: "% of the lines are comments"}
	lines, comments := 0, 0
	t.files(func(_ *packages.Package, path string, f *ast.File) {
		text, err := os.ReadFile(path)
		if err != nil {
			return
		}
		lines += bytes.Count(text, []byte("\n"))
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
				comments++
			}
		}
	})
	fig.value = 100 * float64(comments) / float64(max(lines, 1))
	return fig
}
