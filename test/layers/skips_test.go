package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A skipped test shows in the output of a run only by its message. So each message begins with the word SKIPPED, which a search
// finds, and continues with the missing programs.
func TestSkipsAreLoud(t *testing.T) {
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || path != root && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if imports(file, "testing") {
			for _, call := range skips(file) {
				count++
				if !isLoud(call) {
					t.Errorf("%s: the message of a skip begins with SKIPPED: and what to install or set", set.Position(call.Pos()))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 50 {
		t.Errorf("only %d skips were found", count)
	}
}

func imports(file *ast.File, path string) bool {
	for _, i := range file.Imports {
		if i.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

// skips returns the calls that skip a test. A skip inside a rapid check doesn't count, because rapid continues with other values.
func skips(file *ast.File) []*ast.CallExpr {
	var all []*ast.CallExpr
	var walk func(n ast.Node, rapid bool)
	walk = func(n ast.Node, rapid bool) {
		ast.Inspect(n, func(m ast.Node) bool {
			switch m := m.(type) {
			case *ast.FuncDecl:
				if m != n && m.Body != nil {
					walk(m.Body, ofRapid(m.Type, rapid))
					return false
				}
			case *ast.FuncLit:
				walk(m.Body, ofRapid(m.Type, rapid))
				return false
			case *ast.CallExpr:
				f, ok := m.Fun.(*ast.SelectorExpr)
				if ok && !rapid && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf" || f.Sel.Name == "SkipNow") {
					all = append(all, m)
				}
			}
			return true
		})
	}
	walk(file, false)
	return all
}

// ofRapid reports whether a function's tests are those of rapid; a function without a test is like the one around it.
func ofRapid(f *ast.FuncType, outer bool) bool {
	for _, p := range f.Params.List {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "T" {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				return pkg.Name == "rapid"
			}
		}
	}
	return outer
}

func isLoud(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	return ok && strings.HasPrefix(strings.Trim(text.Value, "`\""), "SKIPPED: ")
}
