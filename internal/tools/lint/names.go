package main

import (
	_ "embed"
	"go/ast"
	"strings"

	"golang.org/x/tools/go/packages"
)

//go:embed words.txt
var wordsFile string

// oddShare is the largest share of identifiers, in percent, that may be one of the words. Lower it when the figure has come down.
const oddShare = 0.1

// words returns the words of words.txt in lower case, without its comments.
func words() map[string]bool {
	vocabulary := map[string]bool{}
	for line := range strings.Lines(wordsFile) {
		if !strings.HasPrefix(line, "#") {
			for _, w := range strings.Fields(line) {
				vocabulary[w] = true
			}
		}
	}
	return vocabulary
}

// names measures the share of declared identifiers that are one of the words. Methods that implement an interface of
// the standard library, such as Read, are not ours to name. Only whole identifiers count: isKnown and knownKeys are
// fine, known is not, because it doesn't say what is known.
func (t *tree) names() figure {
	odd := words()
	fig := figure{name: "names", limit: oddShare, of: "% of the declared identifiers are adverbs, participles, pronouns or quantifiers"}
	declared := 0
	t.files(func(p *packages.Package, _ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || id.Name == "_" {
				return true
			}
			if p.TypesInfo.Defs[id] == nil { // a use, or the package clause
				return true
			}
			declared++
			if odd[strings.ToLower(id.Name)] && !standard[id.Name] {
				fig.list = append(fig.list, t.place(id.Pos())+" "+id.Name)
			}
			return true
		})
	})
	fig.value = 100 * float64(len(fig.list)) / float64(max(declared, 1))
	return fig
}

// standard are method names of the standard library's interfaces.
var standard = map[string]bool{"Read": true, "Less": true, "Is": true, "As": true, "Set": true, "Done": true}
