package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// backward is how many arrows between the files of the gateway may point backward. Lower it when there are fewer.
const backward = 9

// graph holds for each file the other files of its package that it refers to. Several references between two files
// are one arrow.
type graph map[string]map[string]bool

// arrows counts the references between a package's files that point backward in the best order that is found: from
// one file to another that comes before it. An order without any would mean that the files are layers, which can be
// read from the first to the last without knowing what follows. Cycles always have an arrow that points backward.
func (t *tree) arrows(path string) figure {
	fig := figure{name: "arrows", limit: backward, of: "arrows between the gateway's files that point backward"}
	g := graph{}
	t.files(func(p *packages.Package, file string, f *ast.File) {
		if p.PkgPath != path {
			return
		}
		from := filepath.Base(file)
		if g[from] == nil {
			g[from] = map[string]bool{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if o := p.TypesInfo.Uses[id]; o != nil && o.Pkg() == p.Types && declaredInPackage(o) {
					if to := filepath.Base(t.fset.Position(o.Pos()).Filename); to != from {
						g[from][to] = true
					}
				}
			}
			return true
		})
	})
	order := g.order()
	for from, tos := range g {
		for to := range tos {
			if slices.Index(order, to) < slices.Index(order, from) {
				fig.list = append(fig.list, from+" -> "+to)
			}
		}
	}
	fig.value = float64(len(fig.list))
	return fig
}

// declaredInPackage reports whether an object belongs to a package rather than to a function: a declaration of the
// file, a method, a field. Variables of functions can't be used in other files.
func declaredInPackage(o types.Object) bool {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return true
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == o.Pkg().Scope()
}

// attempts is how many orders the search begins with.
const attempts = 40

// order returns an order of the files in which few arrows point backward. The best order is hard to find (it is the
// feedback arc set problem), so this improves several orders, and takes the best result. The first begins with the files that refer to the
// most others; the others are shuffled with a fixed seed, so the result is the same in every run.
func (g graph) order() []string {
	order := slices.SortedFunc(maps.Keys(g), func(a, b string) int { return cmp.Or(len(g[b])-len(g[a]), cmp.Compare(a, b)) })
	r := rand.New(rand.NewPCG(1, 1))
	best := g.improve(slices.Clone(order))
	for range attempts - 1 {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if next := g.improve(slices.Clone(order)); g.backward(next) < g.backward(best) {
			best = next
		}
	}
	return best
}

// backward counts the arrows that point backward in an order.
func (g graph) backward(order []string) (n int) {
	for i, from := range order {
		for _, to := range order[:i] {
			n += arrow(g, from, to)
		}
	}
	return n
}

// improve moves single files to where they do best until no move helps. Each move removes at least one backward arrow, so the loop
// ends.
func (g graph) improve(order []string) []string {
	for improves := true; improves; {
		improves = false
		for _, f := range slices.Clone(order) {
			i := slices.Index(order, f)
			// gain is how many arrows fewer point backward if f moves behind (or before) its neighbours up to j.
			best, to, gain := 0, i, 0
			for j := i + 1; j < len(order); j++ {
				gain += arrow(g, order[j], f) - arrow(g, f, order[j])
				if gain > best {
					best, to = gain, j
				}
			}
			gain = 0
			for j := i - 1; j >= 0; j-- {
				gain += arrow(g, f, order[j]) - arrow(g, order[j], f)
				if gain > best {
					best, to = gain, j
				}
			}
			if to != i {
				order = slices.Insert(slices.Delete(order, i, i+1), to, f)
				improves = true
			}
		}
	}
	return order
}

func arrow(g graph, from, to string) int {
	if g[from][to] {
		return 1
	}
	return 0
}
