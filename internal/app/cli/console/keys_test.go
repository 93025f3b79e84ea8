package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Keys are the same wherever the bytes are divided, as they are on a slow connection.
func TestKeys(t *testing.T) {
	tests := []struct {
		input string
		want  []key
	}{
		{"héllo\r", []key{{Text: "héllo"}, {Name: "enter"}}},
		{"a\x1b[Ab\x1bOB", []key{{Text: "a"}, {Name: "up"}, {Text: "b"}, {Name: "down"}}},
		{"\x1b\r\n\x1b[13;2u", []key{{Name: "newline"}, {Name: "newline"}, {Name: "newline"}}},
		{"\x1b[200~one\r\ntwo\rthree\x1b[A\x1b[201~x", []key{{Text: "one\ntwo\nthree\x1b[A", IsPaste: true}, {Text: "x"}}},
		{"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~", []key{{Text: "a", IsPaste: true}, {Text: "b", IsPaste: true}}},
		{"\x03\x04\x7f\t", []key{{Name: "interrupt"}, {Name: "eof"}, {Name: "backspace"}, {Name: "tab"}}},
		{"\x1b[99;99Xa", []key{{Text: "a"}}},
	}
	for _, tt := range tests {
		for i := range len(tt.input) + 1 {
			var d decoder
			got := append(d.decode([]byte(tt.input[:i])), d.decode([]byte(tt.input[i:]))...)
			var joined []key
			for _, k := range got { // text that was divided is the same text
				if last := len(joined) - 1; last >= 0 && k.Name == "" && joined[last].Name == "" && !k.IsPaste && !joined[last].IsPaste {
					joined[last].Text += k.Text
					continue
				}
				joined = append(joined, k)
			}
			if diff := cmp.Diff(tt.want, joined); diff != "" {
				t.Errorf("%q divided at %d (-want +got)\n%s", tt.input, i, diff)
			}
			if d.isWaiting() {
				t.Errorf("%q divided at %d: bytes remain", tt.input, i)
			}
		}
	}
}

// Escape alone is a key when nothing follows it.
func TestEscape(t *testing.T) {
	var d decoder
	if keys := d.decode([]byte("\x1b")); len(keys) != 0 || !d.isWaiting() {
		t.Errorf("keys %v, waiting %v", keys, d.isWaiting())
	}
	if diff := cmp.Diff([]key{{Name: "escape"}}, d.flush()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if keys := d.flush(); keys != nil || d.isWaiting() {
		t.Errorf("a second flush has keys %v", keys)
	}
}
