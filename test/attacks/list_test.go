package attacks

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// atLeast is how many attacks the list has to have.
const atLeast = 60

// row is a line of the list: number, attack, answer, tests.
var row = regexp.MustCompile(`^\| (\d+) \| (.+) \| (.+) \| (.+) \|$`)

// named is a test in the last column: `folder` Test or Test/subtest.
var named = regexp.MustCompile("`([a-z0-9/]+)` (Test[A-Za-z0-9]+)(?:/([^,]+))?")

// TestList holds docs/security.md to the truth: its rows are numbered, and each test that they name is there.
func TestList(t *testing.T) {
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if n++; m[1] != strconv.Itoa(n) {
			t.Errorf("row %d has the number %s", n, m[1])
		}
		tests := named.FindAllStringSubmatch(m[4], -1)
		if len(tests) == 0 {
			t.Errorf("row %d names no test: %s", n, m[4])
		}
		for _, one := range tests {
			if why := missing(t, one[1], one[2], strings.TrimSpace(one[3])); why != "" {
				t.Errorf("row %d: %s", n, why)
			}
		}
	}
	if n < atLeast {
		t.Errorf("%d attacks, want at least %d", n, atLeast)
	}
}

var parsed = map[string]map[string]string{} // folder: test: the text of its files

// missing returns the reason why a test of the list doesn't exist, or "". A subtest is found by its name in the text of the folder's tests.
func missing(t *testing.T, folder, test, sub string) string {
	t.Helper()
	all := parsed[folder]
	if all == nil {
		all = map[string]string{}
		parsed[folder] = all
		files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text += string(b)
		}
		for _, path := range files {
			f, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					all[fn.Name.Name] = text
				}
			}
		}
	}
	text, ok := all[test]
	switch {
	case !ok:
		return folder + " has no " + test
	case sub != "" && !strings.Contains(text, sub):
		return folder + " has no subtest " + sub + " of " + test
	}
	return ""
}
