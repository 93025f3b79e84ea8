package console

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/internal/base/markup"
)

// texts returns lines without their styles.
func texts(lines []line) []string {
	all := make([]string, 0, len(lines))
	for _, l := range lines {
		all = append(all, l.text())
	}
	return all
}

func TestWrap(t *testing.T) {
	tests := []struct {
		text       string
		width      int
		isVerbatim bool
		want       []string
	}{
		{"one two three", 8, false, []string{"one two", "three"}},
		{"one two three", 7, false, []string{"one two", "three"}},
		{"abcdefghij", 4, false, []string{"abcd", "efgh", "ij"}},
		{"ab cdefghij", 4, false, []string{"ab", "cdef", "ghij"}},
		{"水路は静か", 5, false, []string{"水路", "は静", "か"}},
		{"a水路", 4, false, []string{"a水", "路"}},
		{"👩‍👩‍👧 family", 4, false, []string{"👩‍👩‍👧", "fami", "ly"}},
		{"  x = 1  ", 4, true, []string{"  x ", "= 1 ", " "}},
		{"", 4, false, []string{""}},
		{"e\u0301a\x1b[2J", 10, false, []string{"e\u0301a·[2J"}},
	}
	for _, tt := range tests {
		var got []string
		for _, l := range wrap(cellsOf(tt.text, plain), tt.width, tt.isVerbatim) {
			got = append(got, line(l).text())
			if w := widthOf(l); w > tt.width {
				t.Errorf("%q: a line of %d columns, of %d", tt.text, w, tt.width)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q in %d columns (-want +got)\n%s", tt.text, tt.width, d)
		}
	}
}

func TestMarkdown(t *testing.T) {
	tests := []struct {
		name, source string
		width        int
		want         string
	}{
		{"paragraphs", "One *two*\n\nthree", 20, "One two\n\nthree"},
		{"heading", "# Title\ntext", 20, "Title\n\ntext"},
		{"list", "- one two three four\n- five\n  1. six", 12, "• one two\n  three four\n• five\n  1. six"},
		{"quote", "> one two three", 10, "│ one two\n│ three"},
		{"code", "```go\nif x {\n\treturn\n}\n```", 20, "if x {\n    return\n}"},
		{"table", "|a|bcd|\n|-|-|\n|水|x|", 20, "a  │ bcd\n───┼────\n水 │ x"},
		{"a table that is too wide", "|name|text|\n|-|-|\n|one|two three four|\n|five|six|", 12, "name: one\ntext: two\nthree four\n\nname: five\ntext: six"},
		{"links", "[here](https://x.test/a) <https://y.test>", 60, "here (https://x.test/a) https://y.test"},
		{"character references stay visible", "a &#27;[2J &#155;31m b", 60, "a ·[2J ·31m b"},
		{"HTML is text", "<b>x</b>", 20, "<b>x</b>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := markup.Parse(tt.source)
			got := strings.Join(texts(markdown(doc, 0, doc.Len(), tt.width)), "\n")
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestStyles(t *testing.T) {
	doc := markup.Parse("a **b *c*** `d`")
	got := markdown(doc, 0, doc.Len(), 80)[0].String()
	if want := "a \x1b[0m"; strings.HasPrefix(got, want) {
		t.Errorf("plain text has a style: %q", got)
	}
	if want := "a \x1b[1mb \x1b[0m\x1b[1;3mc\x1b[0m \x1b[36md\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
