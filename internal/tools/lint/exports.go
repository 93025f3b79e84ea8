package main

import (
	"go/types"
	"slices"
	"strings"
)

// unusedExports is how many exported identifiers may have no use in another package. Lower it when there are fewer: about half of them are
// formats of internal/base/markup whose platforms have no channel yet.
const unusedExports = 45

// public are the roots of what programs that embed Leat may import, such as agent/acp or dialect/recording. Programs of others may
// use their identifiers, so they count as used.
var public = []string{"agent", "chattest", "dialect", "event", "transcript", "sse", "clients"}

const module = "github.com/leat-dev/leat/"

// exports counts the exported functions, types, variables, constants and methods that no other package uses. A test
// of another package counts as a use, a test of the package itself does not. Code behind build tags isn't loaded, so
// its uses don't count. Fields are left out: many are used only by encoding/json.
func (t *tree) exports() figure {
	fig := figure{name: "exports", limit: unusedExports, of: "exported identifiers that no other package uses"}
	usedKeys := map[string]bool{}
	for _, p := range append(t.packages, t.tests...) {
		pkgPath := strings.TrimSuffix(p.PkgPath, "_test")
		for _, o := range p.TypesInfo.Uses {
			if o.Pkg() != nil && o.Pkg().Path() != pkgPath && o.Exported() {
				usedKeys[key(o)] = true
			}
		}
	}
	interfaces := t.interfaces()
	for _, p := range t.packages {
		rel := strings.TrimPrefix(p.PkgPath+"/", module)
		if p.Name == "main" || isPublic(strings.TrimSuffix(rel, "/")) {
			continue
		}
		scope := p.Types.Scope()
		for _, name := range scope.Names() {
			o := scope.Lookup(name)
			if !o.Exported() {
				continue
			}
			if !usedKeys[key(o)] {
				fig.list = append(fig.list, t.place(o.Pos())+" "+name)
			}
			typ, ok := o.Type().(*types.Named)
			if _, isType := o.(*types.TypeName); !ok || !isType || types.IsInterface(typ) {
				continue
			}
			for m := range typ.Methods() {
				if m.Exported() && !usedKeys[key(m)] && !interfaces[m.Name()] {
					fig.list = append(fig.list, t.place(m.Pos())+" "+name+"."+m.Name())
				}
			}
		}
	}
	fig.value = float64(len(fig.list))
	return fig
}

// isPublic reports whether a package, by its path in the module, is for other programs: the root package, and everything below one of
// the public folders, except for internal folders, which Go doesn't let other modules import.
func isPublic(rel string) bool {
	folders := strings.Split(rel, "/")
	return rel == "" || slices.Contains(public, folders[0]) && !slices.Contains(folders, "internal")
}

// key names an object across packages that were checked apart: its package, its type if it is a method, and its name.
// The same object has different values in the package itself and in packages that import it, so pointers can't be
// compared.
func key(o types.Object) string {
	k := o.Pkg().Path() + "."
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			t := recv.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if n, ok := t.(*types.Named); ok {
				k += n.Obj().Name() + "."
			}
		}
	}
	return k + o.Name()
}

// interfaces returns the names of the methods of every interface that the tree declares or imports: a method with such a name may be
// called through it.
func (t *tree) interfaces() map[string]bool {
	names := map[string]bool{}
	visited := map[*types.Package]bool{}
	add := func(i *types.Interface) {
		for m := range i.Methods() {
			names[m.Name()] = true
		}
	}
	visit := func(p *types.Package) {
		if visited[p] {
			return
		}
		visited[p] = true
		for _, name := range p.Scope().Names() {
			if i, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok {
				add(i)
			}
		}
	}
	for _, p := range t.packages {
		visit(p.Types)
		for _, i := range p.Types.Imports() {
			visit(i)
		}
		// Interfaces that are written in place, such as in a type assertion.
		for _, tv := range p.TypesInfo.Types {
			if i, ok := tv.Type.(*types.Interface); ok {
				add(i)
			}
		}
	}
	return names
}
