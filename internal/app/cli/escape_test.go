package cli

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Each text is written in one piece and byte by byte, which splits characters.
func TestEscaper(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 🎉\n\ttext":         "plain äöü 🎉\n\ttext",
		"\x1b]0;title\a\x1b[2J":       `\u001b]0;title\u0007\u001b[2J`,
		"over\rwritten":               `over\u000dwritten`,
		"c1 \u009b2J del \x7f":        `c1 \u009b2J del \u007f`,
		"no utf-8: \x9b2J":            `no utf-8: \ufffd2J`,
		`{"text":"` + "\u009b" + `"}`: `{"text":"\u009b"}`,
	} {
		for _, step := range []int{1, 3, len(in)} {
			var b bytes.Buffer
			e := &escaper{w: &b}
			for rest := []byte(in); len(rest) > 0; {
				n := min(step, len(rest))
				if _, err := e.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if b.String() != want {
				t.Errorf("%q in steps of %d: %q, want %q", in, step, b.String(), want)
			}
		}
		if json.Valid([]byte(in)) && !json.Valid([]byte(want)) {
			t.Errorf("%s is not valid JSON after escaping", want)
		}
	}
}
