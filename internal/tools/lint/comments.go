package main

import (
	"bytes"
	"errors"
	"go/ast"
	"os"

	"golang.org/x/tools/go/packages"
)

// commentShare is the smallest share of lines, in percent, that are comments. Raise it when the figure has gone up.
const commentShare = 14

// comments measures the share of lines that hold only a comment, directives included: the tree has few of them.
// Comments at the end of a line of code don't count, and blank lines count as lines.
func (t *tree) comments() (figure, error) {
	fig := figure{name: "comments", limit: commentShare, isMinimum: true, of: "% of the lines are comments"}
	lines, comments := 0, 0
	var failed error
	t.files(func(_ *packages.Package, path string, f *ast.File) {
		text, err := os.ReadFile(path)
		if err != nil {
			failed = errors.Join(failed, err)
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
	return fig, failed
}
