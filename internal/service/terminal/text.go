package terminal

import (
	"strings"
	"unicode/utf8"
)

// text makes whole characters of bytes that come in pieces.
type text struct{ rest []byte }

// take returns the text that is whole now. What is no UTF-8 becomes U+FFFD.
func (t *text) take(b []byte) string {
	b = append(t.rest, b...)
	whole := len(b)
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				whole -= i
			}
			break
		}
	}
	s := valid(string(b[:whole]))
	t.rest = append([]byte(nil), b[whole:]...)
	return s
}

// end returns what was left of a character when nothing came any more.
func (t *text) end() string {
	s := valid(string(t.rest))
	t.rest = nil
	return s
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
