package terminal

import (
	"strings"
	"unicode/utf8"
)

// text makes whole characters of bytes that come in pieces.
type decoder struct{ partial []byte }

// take returns the text that is whole now. What is no UTF-8 becomes U+FFFD.
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

// end returns what was left of a character when nothing came any more.
func (t *decoder) flush() string {
	s := valid(string(t.partial))
	t.partial = nil
	return s
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
