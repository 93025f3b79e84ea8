package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typed returns keys from words: a word in angle brackets is a key, any other is text.
func typed(words ...string) []key {
	keys := make([]key, 0, len(words))
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "<"); ok {
			keys = append(keys, key{Name: strings.TrimSuffix(name, ">")})
			continue
		}
		keys = append(keys, key{Text: w})
	}
	return keys
}

func TestEditor(t *testing.T) {
	tests := []struct {
		keys []string
		want string // with | at the cursor
	}{
		{[]string{"abc", "<left>", "x"}, "abx|c"},
		{[]string{"one two", "<delete-word>"}, "one |"},
		{[]string{"one two", "<word-left>", "<word-left>", "<delete>"}, "|ne two"},
		{[]string{"one", "<home>", "<word-right>", "<left>", "<delete-end>"}, "on|"},
		{[]string{"a", "<newline>", "bc", "<home>", "<backspace>"}, "a|bc"},
		{[]string{"a", "<newline>", "bc", "<delete-start>"}, "a\n|"},
		{[]string{"水", "e", "\u0301", "<backspace>"}, "水|"},
		{[]string{"<backspace>", "<delete>", "<left>", "<right>"}, "|"},
		{[]string{"a\x1b[2Jb"}, "a·[2Jb|"},
	}
	for _, tt := range tests {
		var e editor
		for _, k := range typed(tt.keys...) {
			if !e.edit(k) {
				t.Errorf("%v is not a key of the editor", k)
			}
		}
		if got := line(e.cells[:e.cursor]).text() + "|" + line(e.cells[e.cursor:]).text(); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.keys, got, tt.want)
		}
	}
}

func TestEditorRows(t *testing.T) {
	var e editor
	e.setText("one two three\n水水水水水")
	rows, row, column := e.rows(12)
	if d := cmp.Diff([]string{"› one two ", "  three", "  水水水水", "  水"}, texts(rows)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if row != 3 || column != 4 {
		t.Errorf("cursor %d, %d", row, column)
	}
	e.edit(key{Name: "home"})
	if _, row, column = e.rows(12); row != 2 || column != 2 {
		t.Errorf("cursor %d, %d at the beginning of the second line", row, column)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "leat", "history")
	if entries, err := loadHistory(path); err != nil || entries != nil {
		t.Fatalf("a new history has %q, %v", entries, err)
	}
	for _, text := range []string{"one", "two\nlines"} {
		if err := appendHistory(path, text); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want && os.PathSeparator == '/' {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
	entries, err := loadHistory(path)
	if d := cmp.Diff([]string{"one", "two\nlines"}, entries); d != "" || err != nil {
		t.Fatalf("%v (-want +got)\n%s", err, d)
	}
	h := newHistory(entries)
	var got []string
	for _, by := range []int{-1, -1, -1, 1, 1, 1} {
		text, ok := h.move(by, "draft")
		if !ok {
			text = "-"
		}
		got = append(got, text)
	}
	if d := cmp.Diff([]string{"two\nlines", "one", "-", "two\nlines", "draft", "-"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if !h.add("three") || h.add("three") {
		t.Error("a repeated message is added twice")
	}
}

// A history that has become long keeps its newest entries.
func TestLongHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte(strings.Repeat("\"old\"\n", 2*maxHistory)+"\"cut\n\"new\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		entries, err := loadHistory(path)
		if err != nil || len(entries) != maxHistory || entries[maxHistory-1] != "new" {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
	}
}
