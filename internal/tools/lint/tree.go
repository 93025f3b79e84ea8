package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// tree is the type-checked code of the module.
type tree struct {
	dir      string
	fset     *token.FileSet
	packages []*packages.Package // without tests, sorted by path
	tests    []*packages.Package // the same with their tests, and external test packages
}

// load type-checks the packages twice, without and with their tests: a figure over the code must not count tests, but exports
// needs the tests' uses.
func load(pattern string) (*tree, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, fset: token.NewFileSet()}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedForTest,
		Fset: t.fset, Tests: true,
	}, pattern)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.ID, p.Errors[0])
		}
		switch {
		case strings.HasSuffix(p.ID, ".test"): // the generated main of a test
		// A package that imports a package under test is loaded a second time with it. ForTest marks both these and
		// the test packages.
		case p.ForTest != "":
			t.tests = append(t.tests, p)
		default:
			t.packages = append(t.packages, p)
		}
	}
	return t, nil
}

// files calls do with each file that people write, tests apart. The path is absolute.
func (t *tree) files(do func(p *packages.Package, path string, f *ast.File)) {
	for _, p := range t.packages {
		for _, f := range p.Syntax {
			path := t.fset.Position(f.FileStart).Filename
			if !ast.IsGenerated(f) {
				do(p, path, f)
			}
		}
	}
}

// place returns where a node is, relative to the folder of the module.
func (t *tree) place(pos token.Pos) string {
	p := t.fset.Position(pos)
	if rel, err := filepath.Rel(t.dir, p.Filename); err == nil {
		p.Filename = rel
	}
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
