package main

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// maxChains is how many chains there may be. Lower it when there are fewer.
const maxChains = 0

// chainLength is the number of fields in a row from which on a chain counts. Three are usual, such as the limits of a
// configuration.
const chainLength = 4

// chains counts the selector expressions that walk through that many values, such as w.o.g.cfg.Metrics: the code knows too much about
// other types.
func (t *tree) chains() figure {
	fig := figure{name: "chains", limit: maxChains, of: "chains of four fields"}
	t.files(func(p *packages.Package, _ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if fields(p.TypesInfo, sel) >= chainLength {
				fig.list = append(fig.list, t.place(sel.Pos())+" "+types.ExprString(sel))
			}
			return false // its beginning is part of the same chain
		})
	})
	fig.value = float64(len(fig.list))
	return fig
}

// fields counts the fields in a row that a chain of selectors goes through; a package name or a call ends it. A
// method at the end counts as well, because finding it needs the same knowledge of the types.
func fields(info *types.Info, sel *ast.SelectorExpr) int {
	n := 0
	for {
		if s := info.Selections[sel]; s != nil {
			n++
		}
		next, ok := sel.X.(*ast.SelectorExpr)
		if !ok {
			return n
		}
		sel = next
	}
}
