package markup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	doc := Parse("# One\n\n> - a **b**\n\n|x|y|\n|-|-|\n|1||\n\n```\n a\n```\n\n[l](https://x.test)\n\nend\n")
	want := []Line{
		{Runs: []Run{{"One", Strong}}},
		{},
		{Prefix: "> • ", Runs: []Run{{"a ", 0}, {"b", Strong}}},
		{},
		{Cells: []string{"x", "y"}},
		{Cells: []string{"1", ""}},
		{},
		{Verbatim: true, Runs: []Run{{" a", Code}}},
		{},
		{Runs: []Run{{"l", Link}, {Text: " (https://x.test)"}}},
		{},
		{Runs: []Run{{"end", 0}}},
	}
	if d := cmp.Diff(want, doc.Lines(0, doc.Len())); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// The blocks before and behind a stable position are those of the whole.
	parts := append(doc.Lines(0, doc.Stable()), Line{})
	if d := cmp.Diff(want, append(parts, doc.Lines(doc.Stable(), doc.Len())...)); d != "" {
		t.Errorf("divided (-want +got)\n%s", d)
	}
	if lines := Parse("").Lines(0, 0); lines != nil {
		t.Errorf("an empty text has lines: %v", lines)
	}
}
