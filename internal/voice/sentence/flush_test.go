package sentence

import (
	"strings"
	"testing"
)

// TestFlush checks what is spoken when the answer pauses. A bar stands for the pause.
func TestFlush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, text, want string }{
		// Sentences that only waited for proof, or for company.
		{"", "Done.", "Done."},
		{"", "Done. ", "Done."},
		{"", "Done!", "Done!"},
		{"", "Is it done?", "Is it done?"},
		{"", "Wait...", "Wait..."},
		{"", "He said \"stop.\"", "He said \"stop.\""},
		{"", "Done. And then", "Done."},
		{"", "**Done.**", "Done."},
		{"", "你好。", "你好。"},
		{"", "Let me look at the logs:", "Let me look at the logs:"},
		{"", "Yes. No. Dr.", "Yes. No."},
		{"", "A line of a paragraph that an editor has wrapped at seventy columns\n", "A line of a paragraph that an editor has wrapped at seventy columns"},
		{"", "Look at `main.go`.", "Look at main.go."},
		{"ko", "네.", "네."},

		// What the next characters may change.
		{"", "", ""},
		{"", "Hello", ""},
		{"", "Let me check that for you", ""},
		{"", "Pi is 3.", ""},
		{"", "Pi is 3. ", ""},
		{"", "It is 10:", ""},
		{"", "This is v1.", ""},
		{"", "Dr.", ""},
		{"", "I met Mr. J.", ""},
		{"", "See e.g.", ""},
		{"", "See Fig.", ""},
		{"", "3.", ""},
		{"", "1. ", ""},
		{"", "- ", ""},
		{"", "An `open span", ""},
		{"", "A [label.", ""},
		{"", "See https://example.com/a.", ""},
		{"", "...", ""},
		{"", "🎉", ""},
		{"de", "Am 3.", ""},
		{"de", "Das ist z. B.", ""},
	} {
		s := New(c.language)
		units := s.Write(c.text)
		units = append(units, s.Flush()...)
		if got := spoken(units); got != c.want {
			t.Errorf("%q: %q instead of %q", c.text, got, c.want)
		}
		if again := s.Flush(); len(again) > 0 {
			t.Errorf("%q: the second flush returned %+v", c.text, again)
		}
		// The answer continues, and nothing is spoken twice or lost.
		rest := " More of it, with the end."
		units = append(units, s.Write(rest)...)
		units = append(units, s.Close()...)
		checkUnits(t, c.text+rest, units)
		if got, want := alnum(spoken(units)), alnum(spoken(segment(c.language, c.text+rest))); got != want {
			t.Errorf("%q: %q instead of %q", c.text, got, want)
		}
	}
}

// TestFlushWithinCode checks that nothing of a code block is spoken when it pauses.
func TestFlushWithinCode(t *testing.T) {
	t.Parallel()
	s := New("en")
	if got := spoken(s.Write("Here:\n```go\nfunc main() {")); got != "Here:\ncode block" {
		t.Fatalf("%q", got)
	}
	if got := s.Flush(); got != nil {
		t.Fatalf("flush returned %+v", got)
	}
	if got := s.Write("}\nx. Y!\n```\n"); len(got) != 1 || got[0].Text != "" {
		t.Fatalf("%+v", got)
	}
}

// TestLatency checks when the first units of an answer are there: with the first character after
// them.
func TestLatency(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Sure, here it is. ":  "",
		"Sure, here it is. T": "Sure, here it is.",
		"Sure, here it is! ":  "Sure, here it is!",
		"Sure, here it is.\n": "Sure, here it is.",
		// Markdown waits for its own end, not for that of the answer.
		"See [the docs](https://example.com) now. T":   "See the docs now.",
		"See [the docs][id] and ![it](x.png) now. T":   "See the docs and it now.",
		"See https://example.com/a now. T":             "See example.com now.",
		"Run `go test` and **wait** for it. T":         "Run go test and wait for it.",
		"Is $x^2$ or \\(y = 1\\) right? ":              "Is x² or y = 1 right?",
		"Is <b>it</b> AT&amp;T's \\*own\\* one? ":      "Is it AT&T's *own* one?",
		"<!-- no --> Is <x> that <a@b.c> there? ":      "Is <x> that a@b.c there?",
		"It is $5 and [sic] it is a_b | c ~ xyz. T":    "It is $5 and [sic] it is a b, c ~ xyz.",
		"## A heading ##\n":                            "A heading",
		"- [x] done\n":                                 "done",
		"[^1]: a note\n":                               "a note",
		"[id]: https://example.com\nIs it there yet? ": "Is it there yet?",
		"Sure!\n":     "Sure!",
		"# A title\n": "A title",
		"- item\n":    "item",
		"```go\n":     "code block",
		"| a | b |\n": "a, b",
		"今天天气很好。我":    "今天天气很好。",
		strings.Repeat("word ", maxLength/5) + "x": strings.TrimSpace(strings.Repeat("word ", maxLength/5)),
	} {
		s := New("")
		if got := spoken(s.Write(text)); got != want {
			t.Errorf("%q: %q instead of %q", text, got, want)
		}
	}
}
