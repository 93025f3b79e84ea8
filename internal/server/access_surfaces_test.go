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

	"github.com/leat-dev/leat/internal/server"
)

// TestWalkHasAllOutputs fails if an output of the list adds no routes, or one that TestWalk doesn't try.
func TestWalkHasAllOutputs(t *testing.T) {
	w := newWalk(t)
	tried := map[string]bool{}
	for _, rt := range w.srv.Routes() {
		tried[rt.Method+" "+rt.Pattern] = true
	}
	for _, o := range w.outputs {
		srv := server.New(server.Options{Token: token})
		general := len(srv.Routes())
		o.Register(srv, w.gw)
		routes := srv.Routes()[general:]
		if len(routes) == 0 {
			t.Errorf("output %q has no routes", o.Name)
		}
		for _, rt := range routes {
			if name := rt.Method + " " + rt.Pattern; !tried[name] {
				t.Errorf("output %q has the route %s, but the walk doesn't", o.Name, name)
			}
		}
		srv.Close()
	}
}

// TestWalkHasAllSurfaces fails if a package has a Register function that newWalk doesn't call, and that isn't in the list of outputs either:
// TestWalk would then miss its routes.
func TestWalkHasAllSurfaces(t *testing.T) {
	walk, err := os.ReadFile("access_test.go")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../app/outputs/outputs.go")
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
			isCalled := strings.Contains(string(walk), strconv.Quote(dir)) && strings.Contains(string(walk), "."+fn.Name.Name+"(srv")
			isListed := strings.Contains(string(list), strconv.Quote(dir)) && strings.Contains(string(list), f.Name.Name+"."+fn.Name.Name)
			if !isCalled && !isListed {
				t.Errorf("%s.%s is neither called in newWalk nor listed in internal/app/outputs: add it there, and decide on its routes in access_routes_test.go", dir, fn.Name.Name)
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
