package server_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestWalkHasAllSurfaces fails if a package has a Register function that newWalk doesn't call: TestWalk would then miss its routes.
func TestWalkHasAllSurfaces(t *testing.T) {
	walk, err := os.ReadFile("access_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Register") {
				continue
			}
			found++
			dir := "github.com/leat-dev/leat/internal/server/" + filepath.ToSlash(filepath.Dir(path))
			if !strings.Contains(string(walk), strconv.Quote(dir)) || !strings.Contains(string(walk), "."+fn.Name.Name+"(srv") {
				t.Errorf("%s.%s is not called in newWalk: call it there, and decide on its routes in access_routes_test.go", dir, fn.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 5 {
		t.Errorf("only %d functions register routes", found)
	}
}
