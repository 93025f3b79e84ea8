package terminal

import (
	"strings"
	"unicode/utf8"
)

// decoder converts bytes that arrive in pieces to text without splitting characters.
type decoder struct{ partial []byte }

// decode returns the complete characters so far. Invalid bytes become U+FFFD.
func (t *decoder) decode(b []byte) string {
	b = append(t.partial, b...)
	complete := len(b)
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				complete -= i
			}
			break
		}
	}
	s := valid(string(b[:complete]))
	t.partial = append([]byte(nil), b[complete:]...)
	return s
}

// flush returns the rest at the end of the stream. An incomplete character becomes U+FFFD.
func (t *decoder) flush() string {
	s := valid(string(t.partial))
	t.partial = nil
	return s
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
